package learnbench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// bar is what a figure shall be.
type bar struct {
	figure      string
	least, most float64 // most 0 is no bound
	reported    bool    // a result, whatever it is: no demand
	says        string
}

func bars() []bar {
	return []bar{
		{figure: "sft_pass1_min", least: 0.15, says: "held-out pass@1 after SFT, lowest seed"},
		{figure: "sft_pass1_max", most: 0.6, says: "the same, highest seed"},
		{figure: "rl_gain_points_min", least: 25, says: "points gained by GRPO-RoC, worst seed"},
		{figure: "rl_pass1_min", least: 0.8, says: "held-out pass@1 after it, worst seed"},
		{figure: "tool_error_drop_min", least: 0.5, says: "share of the tool errors in correct held-out trajectories that it took away, worst seed"},
		{figure: "rl_minutes_max", most: 12, reported: true, says: "minutes of a GRPO-RoC run, SFT and evaluations included, slowest seed"},
		{figure: "minutes", most: 120, reported: true, says: "minutes of all runs"},
		{figure: "dapo_1_gain_points", least: 0.01, reported: true, says: "points gained by DAPO"},
		{figure: "deepseekmath_1_gain_points", least: 0.01, reported: true, says: "points gained by DeepSeekMath's GRPO"},
		{figure: "star_1_gain_points", least: 0.01, reported: true, says: "points gained by STaR's best iteration, which held-out scores chose"},
	}
}

func (k bar) holds(v float64) bool { return v >= k.least && (k.most == 0 || v <= k.most) }

// bound says what is wanted.
func (k bar) bound() string {
	if k.most > 0 {
		return fmt.Sprintf("<= %g", k.most)
	}
	return fmt.Sprintf(">= %g", k.least)
}

// missed lists the demands that are known not to hold.
func missed(f figures) []string {
	var out []string
	for _, k := range bars() {
		if v, ok := f.number(k.figure); ok && !k.reported && !k.holds(v) {
			out = append(out, fmt.Sprintf("%s is %.3g, want %s", k.figure, v, k.bound()))
		}
	}
	return out
}

// report prints a table for people.
func (b *bench) report(out io.Writer, results []result, f figures) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "run\tpass@1 SFT\tfinal\tgain\tpass@k SFT\tfinal\tmaj@k SFT\tfinal\terrors SFT\tfinal\tin rollouts\tlast\ttokens SFT\tfinal\tsteps\tminutes\tof RL\t")
	for _, r := range results {
		a, z := r.first(), r.last()
		fmt.Fprintf(w, "%s\t%.1f%%\t%.1f%%\t%+.1f\t%.1f%%\t%.1f%%\t%.1f%%\t%.1f%%\t%.2f%%\t%.2f%%\t%.2f%%\t%.2f%%\t%.0f\t%.0f\t%d\t%.1f\t%.1f\t\n", r.name(), 100*a.Pass1, 100*z.Pass1, r.gain(),
			100*top(a.PassAt), 100*top(z.PassAt), 100*top(a.MajAt), 100*top(z.MajAt), 100*a.ToolErrorCorrect, 100*z.ToolErrorCorrect,
			100*r.opening(), 100*r.closing(), a.Tokens, z.Tokens, len(r.Steps), r.Minutes, r.MinutesRL)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, s := range r.Star {
			fmt.Fprintf(out, "%s: %s\n", r.name(), s.String())
		}
	}
	z := results[len(results)-1].last()
	fmt.Fprintf(out, "held-out scores: %d problems, %d samples each (k); errors are those among the calls of correct trajectories: held out, and in the first and last %d steps' rollouts\n", z.Problems, z.Samples, window)
	if n, _ := f.number("roc_beats_grpo_of"); n > 0 {
		fmt.Fprintf(out, "the ablation without RoC has more of them in rollouts in %v of %v seeds over the whole run, and ends with more in %v (held out in %v)\n",
			f["roc_beats_grpo_seeds_run"], f["roc_beats_grpo_of"], f["roc_beats_grpo_seeds"], f["roc_beats_grpo_seeds_held_out"])
	}
	for _, k := range bars() {
		if v, ok := f.number(k.figure); ok {
			mark := "ok  "
			if !k.holds(v) {
				mark = "MISS"
			}
			fmt.Fprintf(out, "%s  %-28s %8.4g  %-8s %s\n", mark, k.figure, v, k.bound(), k.says)
		}
	}
	fmt.Fprintf(out, "learning code %s; figures in %s, charts and their numbers beside them\n", b.key, b.Figures)
	return nil
}

// String tells how a stage of STaR went.
func (s star) String() string {
	if len(s.Iterations) == 0 {
		return "no iteration was scored"
	}
	text := "scores"
	for _, it := range s.Iterations {
		text += fmt.Sprintf(" %.1f%%", 100*it.Score)
	}
	text += fmt.Sprintf(" (base first); iteration %d is the best", s.Best)
	if s.Ended == "plateau" {
		return text + ", after which it stood still"
	}
	return text + ", without a plateau"
}

// top is the score of all samples.
func top(scores []float64) float64 { return scores[len(scores)-1] }
