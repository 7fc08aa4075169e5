// Package training starts a run or finds it, follows it, and asks things of it.
package training

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/inputs"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workflows"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Start starts the run, or attaches to it where it is at work or finished. The same plan under the same name is the same
// run; another one is an error that names the difference. found tells that the run existed.
func Start(ctx context.Context, c client.Client, s store.Store, run string, p inputs.Plan) (w client.WorkflowRun, found bool, err error) {
	if err := hold(ctx, s, run, p.Recipe); err != nil {
		return nil, false, err
	}
	if err := p.Upload(ctx, s, run); err != nil {
		return nil, false, err
	}
	// Only a failed or cancelled run starts anew under its name; it finds its work in the store.
	w, err = execute(ctx, c, run, p.Recipe, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if !errors.As(err, &started) {
		return w, false, err
	}
	w = c.GetWorkflow(ctx, workflows.RunID(run), "")
	stopped, err := ended(ctx, c, w)
	if err != nil || !stopped {
		return w, true, err
	}
	w, err = execute(ctx, c, run, p.Recipe, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE)
	return w, true, err
}

func execute(ctx context.Context, c client.Client, run string, r recipe.Recipe, reuse enums.WorkflowIdReusePolicy) (client.WorkflowRun, error) {
	return c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflows.RunID(run), TaskQueue: activities.QueueOrchestrator, WorkflowIDReusePolicy: reuse,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            fmt.Sprintf("train %s: %d stages, %d steps", r.Name, len(r.Stages), r.Steps()),
	}, workflows.TrainingRun, workflows.RunInput{Run: run, Recipe: r})
}

// hold makes the recipe the run's, or refuses one that differs from what the run holds.
func hold(ctx context.Context, s store.Store, run string, r recipe.Recipe) error {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	winner, won, err := store.PutOnce(ctx, s, store.RecipeKey(run), append(body, '\n'))
	if err != nil || won {
		return err
	}
	var held recipe.Recipe
	if err := json.Unmarshal(winner, &held); err != nil {
		return fmt.Errorf("recipe of run %s in the store: %w", run, err)
	}
	return differ(run, held, r)
}

// differ refuses a recipe that is not the run's.
func differ(run string, held, r recipe.Recipe) error {
	mine := r.NumericsID
	r.NumericsID = held.NumericsID
	diff, err := inputs.Difference(held, r)
	if err == nil && diff == "" && mine != held.NumericsID {
		return fault.Userf("run %s: this machine computes %s, the run holds %q (RESTAR_CPU_ISA or another processor); continue it where it was started, or give this one another name with --run", run, mine, held.NumericsID)
	}
	if err != nil || diff == "" {
		return err
	}
	return fault.Userf("run %s exists with another recipe: %s; give this one another name with --run, or restore the recipe to continue the run", run, diff)
}

// duration is the time from a run's first start to its end: a run that was interrupted, or stopped and started again under
// its name, is reported as a whole.
func duration(ctx context.Context, c client.Client, run string) (time.Duration, error) {
	return between(ctx, c, workflows.RunID(run), workflows.RunID(run))
}

// between is the time from the first start of one workflow to the end of another.
func between(ctx context.Context, c client.Client, from, to string) (time.Duration, error) {
	d, err := c.DescribeWorkflowExecution(ctx, to, "")
	if err != nil {
		return 0, fmt.Errorf("end of %s: %w", to, err)
	}
	began, err := firstStart(ctx, c, from)
	return d.GetWorkflowExecutionInfo().GetCloseTime().AsTime().Sub(began), err
}

// firstStart is when a workflow began, over all executions under its id.
func firstStart(ctx context.Context, c client.Client, id string) (time.Time, error) {
	d, err := c.DescribeWorkflowExecution(ctx, id, "") // the newest; lists may lag behind it
	if err != nil {
		return time.Time{}, fmt.Errorf("start of %s: %w", id, err)
	}
	began := d.GetWorkflowExecutionInfo().GetStartTime().AsTime()
	for token := []byte(nil); ; {
		r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", id), NextPageToken: token})
		if err != nil {
			return time.Time{}, fmt.Errorf("start of %s: %w", id, err)
		}
		for _, e := range r.GetExecutions() {
			if t := e.GetStartTime().AsTime(); t.Before(began) {
				began = t
			}
		}
		if token = r.GetNextPageToken(); len(token) == 0 {
			return began, nil
		}
	}
}

// ended tells whether a run was stopped by a person before its recipe was done.
func ended(ctx context.Context, c client.Client, w client.WorkflowRun) (bool, error) {
	d, err := c.DescribeWorkflowExecution(ctx, w.GetID(), "")
	if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return false, err
	}
	var out workflows.RunResult
	err = w.Get(ctx, &out)
	return out.Stopped, err
}
