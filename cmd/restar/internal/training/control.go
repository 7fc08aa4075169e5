package training

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workflows"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// controlTimeout bounds a wish: it is recorded by a worker, and longer means that none is there.
const controlTimeout = 30 * time.Second

// Ask sends a wish (workflows.UpdatePause, UpdateResume or UpdateStop) to a run and returns when it is recorded.
func Ask(ctx context.Context, c client.Client, run, wish string) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	h, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflows.RunID(run), UpdateName: wish, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	var refused *temporal.ApplicationError
	var timeout *client.WorkflowUpdateServiceTimeoutOrCanceledError
	switch {
	case errors.As(err, &refused):
		return fault.Userf("%s", refused.Message())
	case errors.As(err, &timeout):
		return fault.Userf("no worker has answered for run %s within %s; start the stack (`restar run` or `restar dev`) or workers", run, controlTimeout)
	}
	return missing(err, run)
}

// missing explains a run that the server does not know or that has ended.
func missing(err error, run string) error {
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return fault.Userf("there is no run %s at work here; `restar status` lists the runs", run)
	}
	return err
}

// Listed is one run of a listing.
type Listed struct {
	Run     string    `json:"run"`
	Status  string    `json:"status"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
}

// List returns the newest runs first, one line a name.
func List(ctx context.Context, c client.Client) ([]Listed, error) {
	var out []Listed
	seen := map[string]bool{}
	for token := []byte(nil); ; {
		r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowType = 'TrainingRun'", NextPageToken: token})
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, e := range r.GetExecutions() {
			id := e.GetExecution().GetWorkflowId()
			if seen[id] {
				continue
			}
			seen[id] = true
			l := Listed{Run: id, Status: e.GetStatus().String(), Started: e.GetStartTime().AsTime()}
			if t := e.GetCloseTime(); t != nil {
				l.Ended = t.AsTime()
			}
			out = append(out, l)
		}
		if token = r.GetNextPageToken(); len(token) == 0 {
			return out, nil
		}
	}
}
