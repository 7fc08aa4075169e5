package sandboxbench

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// bar is what a figure shall be.
type bar struct {
	figure string
	least  float64
	most   bool // least is a most
	says   string
}

func bars() []bar {
	return []bar{
		{figure: "mixed_vs_codejudge", least: 3.5, says: "mixed calls against code-judge's design, worst of CPU and rate, /run x8 and long-batch x64"},
		{figure: "trivial_vs_codejudge", least: 2, says: "the same, trivial calls"},
		{figure: "overhead_vs_prototype", least: 0.6, most: true, says: "cost beside the snippet, share of the prototype's, worse of both sets"},
		{figure: "p99_over_p50", least: 2, most: true, says: "trivial calls, two at once, least disturbed of ten rounds"},
		{figure: "isolation_on_over_off", least: 1.1, most: true, says: "CPU of a trivial call with all layers and without those that can be left out"},
		{figure: "burst_lost", least: 0, most: true, says: "calls of the burst that did not end once and right"},
		{figure: "real_lost", least: 0, most: true, says: "the same, real programs"},
		{figure: "burst_runs_over_calls", least: 1, most: true, says: "programs started for each call of the burst"},
		{figure: "real_runs_over_calls", least: 1, most: true, says: "the same, real programs"},
		{figure: "verify_int_per_s", least: 20000, says: "integer verdicts a second on one core"},
		{figure: "verify_symbolic_cpu_ms", least: 20, most: true, says: "CPU of a symbolic check, median"},
	}
}

func (k bar) holds(v float64) bool {
	if k.most {
		return v <= k.least
	}
	return v >= k.least
}

// missed lists what was measured and does not meet its bar.
func (b *bench) missed() []string {
	var names []string
	for _, k := range bars() {
		if v, ok := b.figures[k.figure]; ok && !k.holds(v) {
			names = append(names, fmt.Sprintf("%s is %.3g, the bar is %.3g", k.figure, v, k.least))
		}
	}
	return names
}

// report prints tables for people, or the figures for machines.
func (b *bench) report(out io.Writer) error {
	if b.JSON {
		return json.NewEncoder(out).Encode(b.figures)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "calls\tload\tservice\tCPU ms a success\tsuccesses/s\tp50 ms\tp99 ms\tfailed\t")
	for _, kind := range kinds() {
		for _, l := range loads() {
			for _, who := range []string{"restar", "code-judge", "prototype"} {
				k := who + "_" + kind + "_" + l.name
				if _, ok := b.figures[k+"_cpu_ms"]; ok {
					fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t\n", kind, l.name, who, b.figures[k+"_cpu_ms"], b.figures[k+"_per_s"], b.figures[k+"_p50_ms"], b.figures[k+"_p99_ms"], b.figures[k+"_failed"])
				}
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, name := range []string{"burst", "real"} {
		if _, ok := b.figures[name+"_calls"]; ok {
			f := b.figures
			fmt.Fprintf(out, "%s: %.0f calls at once in %.1f s (%.0f/s), %.0f lost, %.4f runs a call; waiting %.0f ms, running %.0f ms at the mean; service peak %.0f MiB, client grew by %.0f MiB\n", name,
				f[name+"_calls"], f[name+"_seconds"], f[name+"_per_s"], f[name+"_lost"], f[name+"_runs_over_calls"], f[name+"_mean_queue_ms"], f[name+"_mean_run_ms"], f[name+"_service_peak_mb"], f[name+"_client_grew_mb"])
		}
	}
	for _, k := range bars() {
		v, ok := b.figures[k.figure]
		if !ok {
			continue
		}
		mark, sign := "ok  ", ">="
		if !k.holds(v) {
			mark = "MISS"
		}
		if k.most {
			sign = "<="
		}
		fmt.Fprintf(out, "%s  %-24s %8.4g  %s %g  %s\n", mark, k.figure, v, sign, k.least, k.says)
	}
	return nil
}
