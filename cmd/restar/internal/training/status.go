package training

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/display"
	"github.com/restar-rl/restar/workflows"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// WriteList prints every run of the stack.
func WriteList(ctx context.Context, out io.Writer, c client.Client, asJSON bool) error {
	runs, err := List(ctx, c)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(out).Encode(runs)
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintln(out, "there is no run yet")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tSTATUS\tSTARTED\tTOOK")
	for _, r := range runs {
		end := r.Ended
		if end.IsZero() {
			end = time.Now()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Run, r.Status, r.Started.Local().Format(time.DateTime), end.Sub(r.Started).Round(time.Second))
	}
	return t.Flush()
}

// status is a run in the form of --json.
type status struct {
	Run     string                  `json:"run"`
	Status  string                  `json:"status"`
	View    display.View            `json:"view"`
	Evals   []activities.EvalResult `json:"evals"`
	Problem string                  `json:"problem,omitempty"`
}

// WriteStatus prints where one run is.
func WriteStatus(ctx context.Context, out io.Writer, c client.Client, run string, asJSON bool) error {
	d, err := c.DescribeWorkflowExecution(ctx, workflows.RunID(run), "")
	if err != nil {
		return missing(err, run)
	}
	state := d.GetWorkflowExecutionInfo().GetStatus()
	chain, waiting := Chain(ctx, c, workflows.RunID(run))
	s := status{Run: run, Status: state.String(), View: display.Merge(chain)}
	s.View.Run, s.View.Waiting, s.View.Trouble = run, waiting, retried(ctx, c, chain)
	if len(chain) > 0 {
		s.Evals, s.Problem = chain[0].Evals, chain[0].Problem
	}
	if asJSON {
		return json.NewEncoder(out).Encode(s)
	}
	line := s.View.Line()
	if state != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		line = s.Status
	}
	fmt.Fprintf(out, "%s: %s\n", run, line)
	if s.Problem != "" {
		fmt.Fprintln(out, s.Problem)
	}
	if len(s.Evals) > 0 {
		fmt.Fprintf(out, "\n%s", activities.EvalTable(s.Evals))
	}
	return nil
}
