package workers

import (
	"context"
	"errors"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/store"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
)

// mendable is a worker interceptor that tells failures which only a person can mend from those that a retry can: a full
// store stays full however often it is asked. The run ends with the message, and goes on when it is started again.
type mendable struct {
	interceptor.WorkerInterceptorBase
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (*mendable) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	m := &mendableActivity{}
	m.Next = next
	return m
}

type mendableActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (m *mendableActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	out, err := m.Next.ExecuteActivity(ctx, in)
	var typed *temporal.ApplicationError
	switch {
	case errors.Is(err, store.ErrNoSpace):
		err = activities.InputError(err)
	case errors.As(err, &typed) && error(typed) != err && typed.NonRetryable():
		// The server reads the outermost error only: the type travels outward with all that was said around it.
		err = temporal.NewNonRetryableApplicationError(err.Error(), typed.Type(), err)
	}
	return out, err
}
