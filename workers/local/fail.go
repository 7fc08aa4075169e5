package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

const (
	// WorkerDied is the error type that a dead worker's activities fail with. It
	// is retryable.
	WorkerDied = "WorkerDied"
	// retryDelay replaces the back-off of the activity's own policy: the worker
	// is gone, the work was not at fault.
	retryDelay = time.Millisecond
	// refailEvery is the pause after the server gave no answer.
	refailEvery = 200 * time.Millisecond
)

// FailOpenActivities fails what a dead worker left open, so that it is retried
// at once. Attempts that ended in the meantime are passed over. It returns how
// many it failed; ctx bounds the wait for the server.
func FailOpenActivities(ctx context.Context, c client.Client, tokensFile string) (int, error) {
	open, err := TakeTokens(tokensFile)
	if err != nil {
		return 0, err
	}
	return FailActivities(ctx, c, open)
}

// FailActivities fails each of the attempts that is still open.
func FailActivities(ctx context.Context, c client.Client, open []OpenActivity) (int, error) {
	failed := 0
	for _, o := range open {
		done, err := failOne(ctx, c, o)
		if err != nil {
			return failed, fmt.Errorf("fail activity %s of workflow %s, whose worker died: %w", o.Type, o.Workflow, err)
		}
		if done {
			failed++
		}
	}
	return failed, nil
}

func failOne(ctx context.Context, c client.Client, o OpenActivity) (bool, error) {
	cause := temporal.NewApplicationErrorWithOptions(fmt.Sprintf("the worker died during attempt %d", o.Attempt), WorkerDied,
		temporal.ApplicationErrorOptions{NextRetryDelay: retryDelay})
	for {
		err := c.CompleteActivity(ctx, o.Token, nil, cause)
		var gone *serviceerror.NotFound
		var down *serviceerror.Unavailable
		var slow *serviceerror.DeadlineExceeded
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &gone):
			return false, nil
		case !errors.As(err, &down) && !errors.As(err, &slow):
			return false, err
		}
		if !wait(ctx, refailEvery) {
			return false, fmt.Errorf("waiting for the Temporal server: %w", err)
		}
	}
}
