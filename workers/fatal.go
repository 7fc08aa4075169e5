package workers

import (
	"context"
	"errors"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/store"
	"go.temporal.io/sdk/interceptor"
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
	if errors.Is(err, store.ErrNoSpace) {
		err = activities.InputError(err)
	}
	return out, err
}
