package training

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/display"
	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workflows"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// Times of following a run.
const (
	lookEvery    = time.Second      // what a person sees as live
	troubleEvery = 10               // looks between two for trouble: it is rare, and asking costs more
	queryTimeout = 10 * time.Second // a query waits for a worker; longer means that none is there
	deepest      = 4                // run, stage, round; and one to spare
)

// Follow shows a run until it ends and returns its result. It ends early, leaving the run alone, when ctx does.
func Follow(ctx context.Context, c client.Client, w client.WorkflowRun, r recipe.Recipe, d *display.Display) (workflows.RunResult, error) {
	defer d.Close()
	done := make(chan error, 1)
	var out workflows.RunResult
	go func() { done <- w.Get(ctx, &out) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var news news
	trouble := ""
	for look := 1; ; look++ {
		select {
		case err := <-done:
			if ctx.Err() != nil {
				return out, session.Ended(ctx)
			}
			news.tell(d, workflows.Progress{Evals: out.Evals})
			return out, err
		case <-ctx.Done():
			return out, session.Ended(ctx)
		case <-tick.C:
			chain, waiting := Chain(ctx, c, w.GetID())
			if len(chain) > 0 {
				news.tell(d, chain[0])
			}
			if look%troubleEvery == 0 {
				trouble = retried(ctx, c, chain)
			}
			v := display.Merge(chain).Of(r)
			v.Waiting, v.Trouble = waiting, trouble
			d.Show(v)
		}
	}
}

// worthTelling is the attempt from which a failure is shown: the first retries mend what a lost worker left.
const worthTelling = 4

// retried describes an activity of the workflows at work that has failed again and again; most often there is none.
func retried(ctx context.Context, c client.Client, chain []workflows.Progress) string {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	for i := len(chain) - 1; i >= 0; i-- {
		id := workflows.RunID(chain[0].Run)
		if i > 0 {
			id = chain[i-1].Child
		}
		d, err := c.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			continue
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetAttempt() >= worthTelling && a.GetLastFailure() != nil {
				return fmt.Sprintf("%s has failed %d times: %s", a.GetActivityType().GetName(), a.GetAttempt()-1, a.GetLastFailure().GetMessage())
			}
		}
	}
	return ""
}

// Chain asks a run and the workflows at work below it where they are, outermost first. waiting names who does not answer.
func Chain(ctx context.Context, c client.Client, run string) (chain []workflows.Progress, waiting string) {
	for id := run; id != "" && len(chain) < deepest; {
		p, err := ask(ctx, c, id)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return chain, "" // a child that has not begun, or has just ended
		}
		if err != nil {
			return chain, "a worker (" + id + " does not answer)"
		}
		chain = append(chain, p)
		id = p.Child
	}
	return chain, ""
}

func ask(ctx context.Context, c client.Client, id string) (p workflows.Progress, err error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	v, err := c.QueryWorkflow(ctx, id, "", workflows.QueryProgress)
	if err != nil {
		return p, err
	}
	return p, v.Get(&p)
}

// news tells what happens once in a run.
type news struct {
	curated bool
	evals   int
	problem string
}

func (n *news) tell(d *display.Display, p workflows.Progress) {
	if c := p.Curated; c != nil && !n.curated {
		n.curated = true
		removed := 0
		for _, k := range c.Removed {
			removed += k
		}
		d.Event("curated", fmt.Sprintf("curated: %d problems to train on, %d held out, %d removed", c.Train.Problems, c.HeldOut.Problems, removed), c)
	}
	for ; n.evals < len(p.Evals); n.evals++ {
		e := p.Evals[n.evals]
		d.Event("evaluation", fmt.Sprintf("%s: avg@%d %.1f%% (%.1f to %.1f), tool errors %.1f%% of calls", e.Name, e.Samples, 100*e.Avg, 100*e.AvgLow, 100*e.AvgHigh, 100*e.ToolErrorShare), e)
	}
	if p.Problem != n.problem {
		n.problem = p.Problem
		if p.Problem != "" {
			d.Event("problem", p.Problem, p.Problem)
		}
	}
}
