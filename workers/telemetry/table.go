package telemetry

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// WriteEvals prints evaluations as a plain text table, one policy a line.
func WriteEvals(w io.Writer, evals []Eval) error {
	if len(evals) == 0 {
		_, err := fmt.Fprintln(w, "no evaluation has finished")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	k := evals[0].Samples
	fmt.Fprintf(t, "policy\tavg@%d\t95%% interval\tmaj@%d\tpass@%d\tcalls\ttool errors\tof calls\ttokens\t\n", k, k, k)
	for _, e := range evals {
		fmt.Fprintf(t, "%s\t%s\t%s to %s\t%s\t%s\t%.2f\t%.2f\t%s\t%.0f\t\n",
			e.Name, pct(e.Avg), pct(e.AvgLow), pct(e.AvgHigh), pct(e.Maj), pct(e.Pass),
			e.CallsPerProblem, e.ErrorsPerProblem, pct(e.ToolErrorShare), e.TokensPerResponse)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(evals) < 2 {
		return nil
	}
	first, last := evals[0], evals[len(evals)-1]
	_, err := fmt.Fprintf(w, "\n%s to %s: avg@%d %+.1f points on %d held-out problems\n", first.Name, last.Name, k, 100*(last.Avg-first.Avg), last.Problems)
	return err
}
