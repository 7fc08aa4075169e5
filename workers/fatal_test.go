package workers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/store"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
)

// failing is an activity that ends with an error.
type failing struct {
	interceptor.ActivityInboundInterceptorBase
	err error
}

func (f *failing) ExecuteActivity(context.Context, *interceptor.ExecuteActivityInput) (any, error) {
	return nil, f.err
}

func TestWhatAPersonHasToMendIsNotRetried(t *testing.T) {
	input := activities.InputError(errors.New("row 3 is bad"))
	for name, c := range map[string]struct {
		err  error
		kind string
	}{
		"a full store":            {fmt.Errorf("put x: %w", store.ErrNoSpace), activities.ErrInput},
		"an input error":          {input, activities.ErrInput},
		"an input error, wrapped": {fmt.Errorf("curate: %w", errors.Join(input)), activities.ErrInput},
		"an outage":               {errors.New("store away"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := (&mendable{}).InterceptActivity(context.Background(), &failing{err: c.err})
			_, err := m.ExecuteActivity(context.Background(), nil)
			app, _ := err.(*temporal.ApplicationError) //nolint:errorlint // the server reads the outermost error only
			if got := app != nil && app.NonRetryable() && app.Type() == c.kind; got != (c.kind != "") {
				t.Errorf("the server sees %#v, want type %q", err, c.kind)
			}
		})
	}
}
