package workflows

import (
	"fmt"
	"sort"
	"strings"

	"github.com/restar-rl/restar/activities"
	"go.temporal.io/sdk/workflow"
)

// Curate turns the run's inputs into sets of problems, with a reason for every removal.
func Curate(ctx workflow.Context, in activities.CurateInput) (activities.CurateResult, error) {
	p := Progress{Run: in.Run, Phase: PhaseCurate}
	if err := answer(ctx, &p); err != nil {
		return activities.CurateResult{}, err
	}
	if err := label(ctx, in.Run, PhaseCurate); err != nil {
		return activities.CurateResult{}, err
	}
	var out activities.CurateResult
	err := workflow.ExecuteActivity(on(ctx, activities.QueueCPU, shortWork, "read, filter and split the problems"), curation.Curate, in).Get(ctx, &out)
	if err == nil {
		workflow.SetCurrentDetails(ctx, curationDetails(out))
	}
	return out, err
}

func curationDetails(r activities.CurateResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%d** training problems, **%d** held out, **%d** demonstrations\n\n| removed because | rows |\n|---|---|\n",
		r.Train.Problems, r.HeldOut.Problems, r.Demos.Problems)
	reasons := make([]string, 0, len(r.Removed))
	//workflowcheck:ignore the keys are sorted before use
	for reason := range r.Removed {
		reasons = append(reasons, reason)
	}
	sort.Strings(reasons)
	for _, reason := range reasons {
		fmt.Fprintf(&b, "| %s | %d |\n", reason, r.Removed[reason])
	}
	return b.String()
}

// answer serves a workflow's progress to whoever asks.
func answer(ctx workflow.Context, p *Progress) error {
	return workflow.SetQueryHandler(ctx, QueryProgress, func() (Progress, error) { return *p, nil })
}
