package learnbench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// figures are numbers under names that stay, and the key of the code that gave them. What is not known has no entry.
type figures map[string]any

// Algorithms that the comparison of tool errors is about.
const (
	roc      = "grpo-roc"
	ablation = "grpo"
)

// set records a number with four significant digits; one that is not finite is not known.
func (f figures) set(name string, v float64) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		rounded, err := strconv.ParseFloat(fmt.Sprintf("%.4g", v), 64)
		if err == nil {
			f[name] = rounded
		}
	}
}

// number is a figure, and whether it is known.
func (f figures) number(name string) (float64, bool) {
	v, ok := f[name].(float64)
	return v, ok
}

// figures sums the finished runs up.
func (b *bench) figures(results []result, of int) figures {
	f := figures{"key": b.key}
	f.set("runs", float64(len(results)))
	f.set("runs_of", float64(of))
	total := 0.0
	for _, r := range results {
		total += r.Minutes
		b.single(f, r)
	}
	f.set("minutes", total)
	worst(f, results)
	against(f, results)
	return f
}

// single adds the figures of one run.
func (b *bench) single(f figures, r result) {
	first, last := r.first(), r.last()
	for name, v := range map[string]float64{
		"pass1_sft": first.Pass1, "pass1_final": last.Pass1, "gain_points": r.gain(), "pass1_best": r.best().Pass1, "best_step": float64(r.best().Step),
		"tool_error_correct_sft": first.ToolErrorCorrect, "tool_error_correct_final": last.ToolErrorCorrect, "tool_error_drop": r.drop(),
		"rollout_tool_error_correct_first": r.opening(), "rollout_tool_error_correct_last": r.closing(), "rollout_tool_error_correct_run": errorRate(r.Steps),
		"tokens_sft": first.Tokens, "tokens_final": last.Tokens, "steps": float64(len(r.Steps)), "minutes": r.Minutes, "minutes_rl": r.MinutesRL,
		"step_seconds_rollout": r.Rollout, "step_seconds_sandbox": r.Sandbox, "step_seconds_train": r.Train,
	} {
		f.set(b.table.figures(r.planned)+name, v)
	}
	for _, s := range r.Star {
		if len(s.Iterations) == 0 {
			continue
		}
		f.set(b.table.figures(r.planned)+"iterations", float64(len(s.Iterations)-1))
		f.set(b.table.figures(r.planned)+"best_iteration", float64(s.Best))
		f.set(b.table.figures(r.planned)+"score_base", s.Iterations[0].Score)
		f.set(b.table.figures(r.planned)+"score_best", s.Iterations[s.Best].Score)
		f.set(b.table.figures(r.planned)+"plateau", float64(count(s.Ended == "plateau")))
	}
	for _, at := range []struct {
		when string
		eval
	}{{"sft", first}, {"final", last}} {
		for k := 1; k <= len(at.PassAt); k *= 2 {
			f.set(fmt.Sprintf("%spass_at_%d_%s", b.table.figures(r.planned), k, at.when), at.PassAt[k-1])
			f.set(fmt.Sprintf("%smaj_at_%d_%s", b.table.figures(r.planned), k, at.when), at.MajAt[k-1])
		}
	}
}

// best is the evaluation with the highest pass@1, the earliest of equals: an algorithm that reaches a plateau is known by it.
func (r result) best() eval {
	best := r.Evals[0]
	for _, e := range r.Evals {
		if e.Pass1 > best.Pass1 {
			best = e
		}
	}
	return best
}

// worst adds the worst of the seeds of GRPO-RoC, and the bounds of where they began.
func worst(f figures, results []result) {
	least := func(of func(result) float64) float64 {
		v := math.Inf(1)
		for _, r := range results {
			if r.Algorithm == roc {
				v = min(v, of(r))
			}
		}
		return v
	}
	f.set("rl_gain_points_min", least(result.gain))
	f.set("rl_pass1_min", least(func(r result) float64 { return r.last().Pass1 }))
	f.set("tool_error_drop_min", least(result.drop))
	f.set("sft_pass1_min", least(func(r result) float64 { return r.first().Pass1 }))
	f.set("sft_pass1_max", -least(func(r result) float64 { return -r.first().Pass1 }))
	f.set("rl_minutes_max", -least(func(r result) float64 { return -r.Minutes }))
}

// against counts the seeds in which the ablation without RoC has a higher tool-error rate in correct trajectories: of the last
// training rollouts as the paper plots them, of the whole run's, and of the last held-out evaluation.
func against(f figures, results []result) {
	seeds, rollouts, whole, heldOut := 0, 0, 0, 0
	for _, a := range results {
		for _, b := range results {
			if a.Algorithm == roc && b.Algorithm == ablation && a.Seed == b.Seed {
				seeds++
				rollouts += count(b.closing() > a.closing())
				whole += count(errorRate(b.Steps) > errorRate(a.Steps))
				heldOut += count(b.last().ToolErrorCorrect > a.last().ToolErrorCorrect)
			}
		}
	}
	f.set("roc_beats_grpo_seeds", float64(rollouts))
	f.set("roc_beats_grpo_seeds_run", float64(whole))
	f.set("roc_beats_grpo_seeds_held_out", float64(heldOut))
	f.set("roc_beats_grpo_of", float64(seeds))
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// writeFigures writes one flat JSON object with sorted names.
func writeFigures(path string, f figures) error {
	body, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return writeJSON(path, body)
}

// writeCurves writes what the charts are drawn from: every evaluation and step, by the run's name.
func writeCurves(path string, results []result) error {
	all := map[string]curves{}
	for _, r := range results {
		all[r.name()] = r.curves
	}
	body, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return writeJSON(path, body)
}

func writeJSON(path string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(body, '\n'), 0o644)
}
