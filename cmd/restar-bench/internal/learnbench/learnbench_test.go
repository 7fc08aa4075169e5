package learnbench

import (
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/product"
	"github.com/restar-rl/restar/workers/recipe"
)

const learnRecipe = "../../../../deploy/recipes/learn.yaml"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func theTable(t *testing.T) table {
	t.Helper()
	tab, err := readTable(tableText)
	must(t, err)
	return tab
}

// derived is the recipe of a run as the product reads it.
func derived(t *testing.T, tab table, p planned) recipe.Recipe {
	t.Helper()
	b, err := product.ReadBase(learnRecipe)
	must(t, err)
	text, err := b.Derive(tab.change(p))
	must(t, err)
	path := filepath.Join(t.TempDir(), product.RecipeFile)
	must(t, os.WriteFile(path, text, 0o600))
	r, err := recipe.Read(path)
	if err != nil {
		t.Fatalf("%s: %v\n%s", p.name(), err, text)
	}
	return r
}

func TestEveryRunIsTheBaseWithAnotherSeedAndAlgorithm(t *testing.T) {
	base, err := recipe.Read(learnRecipe)
	must(t, err)
	tab := theTable(t)
	for _, p := range tab.Runs {
		r := derived(t, tab, p)
		if r.Seed != p.Seed || r.RL.Algorithm != p.Algorithm || r.RL.LR == 0 {
			t.Errorf("%s: seed %d, algorithm %s, learning rate %v", p.name(), r.Seed, r.RL.Algorithm, r.RL.LR)
		}
		want, got := base, r
		for _, x := range []*recipe.Recipe{&want, &got} {
			x.Seed, x.RL, x.Stages, x.Eval = 0, recipe.RL{}, nil, recipe.Eval{}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s differs in more than seed, algorithm, stages and evaluation:\n%+v\n%+v", p.name(), got, want)
		}
		if p.Algorithm == roc && (!reflect.DeepEqual(r.RL, base.RL) || !reflect.DeepEqual(r.Stages, base.Stages) || r.Eval != base.Eval) {
			t.Errorf("%s: the recipe's own algorithm was changed", p.name())
		}
	}
}

func TestTheAblationTrainsOnAsManyTrajectories(t *testing.T) {
	tab := theTable(t)
	a := derived(t, tab, planned{Algorithm: roc, Seed: 2})
	b := derived(t, tab, planned{Algorithm: ablation, Seed: 2})
	for i := range a.Stages {
		x, y := a.Stages[i], b.Stages[i]
		if y.Samples != y.Keep || y.Keep != x.Keep || x.Samples != 2*x.Keep || x.Steps != y.Steps || x.Prompts != y.Prompts {
			t.Errorf("stage %d: RoC has %d of %d samples, the ablation %d of %d", i, x.Keep, x.Samples, y.Keep, y.Samples)
		}
	}
	same := b.RL
	same.Algorithm, same.Selection = a.RL.Algorithm, a.RL.Selection
	if same != a.RL {
		t.Errorf("the ablation differs in more than the selection: %+v, RoC %+v", b.RL, a.RL)
	}
}

func TestTheTableRefusesWhatItCannotRun(t *testing.T) {
	for _, text := range []string{
		"algorithms: {a: {}}\nruns: [{algorithm: b, seed: 1}]", "algorithms: {a: {}}\nruns: [{algorithm: a, seed: 1}, {algorithm: a, seed: 1}]",
		"algorithms: {a: {stage: {}}}\nruns: []", "algorithms: {A b: {}}\nruns: [{algorithm: A b, seed: 1}]",
	} {
		if _, err := readTable([]byte(text)); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
	tab := theTable(t)
	if _, err := tab.choose(false, []string{"grpo-roc-9"}); err == nil || !strings.Contains(err.Error(), "grpo-roc-1") {
		t.Errorf("error %v, want one with the names there are", err)
	}
	short, err := tab.choose(true, nil)
	if err != nil || len(short) != 2 || short[0].name() != "grpo-roc-1" || short[1].name() != "grpo-1" {
		t.Errorf("the short benchmark is %v (%v), want one seed of RoC and of the ablation", short, err)
	}
}

func TestTheKeyFollowsTheLearningCodeAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	commit := func() {
		for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"}} {
			out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
	}
	key := func() string {
		k, err := learningKey(t.Context(), dir, "learn.yaml")
		must(t, err)
		return k
	}
	if _, err := learningKey(t.Context(), dir, "learn.yaml"); err == nil {
		t.Error("a folder without git has a key")
	}
	must(t, exec.Command("git", "-C", dir, "init", "-q").Run())
	write("workers/rl/roc.go", "one")
	write("README.md", "one")
	commit()
	first := key()
	write("README.md", "two")
	write("workers/rl/roc_test.go", "test")
	commit()
	if k := key(); k != first || len(k) != 10 {
		t.Errorf("key %s after a change of README and tests, want %s", k, first)
	}
	seen := []string{first}
	for _, change := range []func(){
		func() { write("workers/rl/roc.go", "two") }, func() { write("workers/rl/new.go", "1") }, func() { write("workers/rl/new.go", "2") },
		func() { write("learn.yaml", "seed: 1") }, commit,
	} {
		change()
		k := key()
		if slices.Contains(seen, k) {
			t.Errorf("key %s stands for two states", k)
		}
		seen = append(seen, k)
	}
	if k := seen[len(seen)-1]; strings.Contains(k, "dirty") || !strings.Contains(seen[1], first+"-dirty-") {
		t.Errorf("keys %v, want dirty ones between the commits", seen)
	}
}

func TestARecipeFromElsewhereHasAKeyOfItsOwn(t *testing.T) {
	here, err := learningKey(t.Context(), "../../../..", "deploy/recipes/learn.yaml")
	must(t, err)
	seen := []string{here}
	for _, text := range []string{"seed: 1", "seed: 2"} {
		path := filepath.Join(t.TempDir(), "mine.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		k, err := learningKey(t.Context(), "../../../..", path)
		must(t, err)
		if slices.Contains(seen, k) || !strings.HasPrefix(k, here[:10]) {
			t.Errorf("key %s beside %v, want one that begins with the commit and differs", k, seen)
		}
		seen = append(seen, k)
	}
}

// finished is a run whose pass@1 goes from a to z and whose errors in correct trajectories go from e to g, of 1000 calls a step.
func finished(p planned, a, z float64, e, g int) result {
	r := result{planned: p, cost: cost{Minutes: 9.5, Rollout: 4, Train: 5}, curves: curves{MinutesRL: 7}}
	for i, v := range []float64{a, (a + z) / 2, z} {
		errors := []int{e, (e + g) / 2, g}[i]
		r.Evals = append(r.Evals, eval{Step: int64(10 * i), Problems: 200, Samples: 4, Pass1: v, ToolErrorCorrect: float64(errors) / 1000, Tokens: 100,
			PassAt: []float64{v, v + 0.05, v + 0.07, v + 0.08}, MajAt: []float64{v, v, v + 0.01, v + 0.02}})
	}
	for i := range 20 {
		r.Steps = append(r.Steps, step{Step: int64(i + 1), Reward: a, CorrectCalls: 1000, CorrectErrors: []int{e, g}[i/10], ResponseTokens: 90, Entropy: 0.3})
	}
	return r
}

func several() []result {
	return []result{
		finished(planned{roc, 1, true}, 0.5, 0.85, 60, 6), finished(planned{ablation, 1, true}, 0.5, 0.8, 60, 20),
		finished(planned{roc, 2, false}, 0.4, 0.82, 50, 20), finished(planned{ablation, 2, false}, 0.4, 0.8, 50, 10),
		finished(planned{roc, 3, false}, 0.45, 0.75, 80, 8), finished(planned{"dapo", 1, false}, 0.5, 0.6, 60, 40),
	}
}

func TestFiguresAreTheWorstOfTheSeedsAndNamesStay(t *testing.T) {
	b := &bench{table: theTable(t), key: "0123456789"}
	f := b.figures(several(), 8)
	for name, want := range map[string]float64{
		"runs": 6, "runs_of": 8, "rl_gain_points_min": 30, "rl_pass1_min": 0.75, "tool_error_drop_min": 0.6, "sft_pass1_min": 0.4, "sft_pass1_max": 0.5,
		"rl_minutes_max": 9.5, "minutes": 57, "roc_beats_grpo_seeds": 1, "roc_beats_grpo_seeds_held_out": 1, "roc_beats_grpo_seeds_run": 1, "roc_beats_grpo_of": 2,
		"roc_1_pass1_sft": 0.5, "roc_1_pass1_final": 0.85, "roc_1_gain_points": 35, "roc_1_tool_error_correct_sft": 0.06, "roc_1_tool_error_correct_final": 0.006,
		"roc_1_tool_error_drop": 0.9, "roc_1_rollout_tool_error_correct_first": 0.06, "roc_1_rollout_tool_error_correct_last": 0.006, "roc_1_rollout_tool_error_correct_run": 0.033,
		"roc_1_pass_at_4_final": 0.93, "roc_1_maj_at_2_sft": 0.5, "roc_1_maj_at_4_final": 0.87, "roc_1_minutes": 9.5, "roc_1_minutes_rl": 7,
		"roc_1_steps": 20, "roc_1_pass1_best": 0.85, "roc_1_best_step": 20, "grpo_2_pass1_final": 0.8, "dapo_1_gain_points": 10,
		"roc_1_tokens_sft": 100, "roc_1_tokens_final": 100, "roc_1_step_seconds_rollout": 4, "roc_1_step_seconds_train": 5,
	} {
		if got, ok := f.number(name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, f[name], want)
		}
	}
	if f["key"] != "0123456789" {
		t.Errorf("key is %v", f["key"])
	}
	if got := missed(f); len(got) != 1 || !strings.Contains(got[0], "rl_pass1_min is 0.75") {
		t.Errorf("missed %q, want pass@1 only", got)
	}
	path := filepath.Join(t.TempDir(), "a", "learn.json")
	must(t, writeFigures(path, f))
	var flat map[string]any
	body, err := os.ReadFile(path)
	must(t, err)
	must(t, json.Unmarshal(body, &flat))
	for k, v := range flat {
		if _, nested := v.(map[string]any); nested {
			t.Errorf("%s is no number", k)
		}
	}
}

func TestWhatWasNotRunHasNoFigure(t *testing.T) {
	b := &bench{table: theTable(t), key: "k"}
	f := b.figures([]result{finished(planned{"dapo", 1, false}, 0.5, 0.6, 0, 0)}, 8)
	for _, name := range []string{"rl_gain_points_min", "rl_pass1_min", "tool_error_drop_min", "sft_pass1_min", "sft_pass1_max", "rl_minutes_max", "dapo_1_tool_error_drop"} {
		if v, ok := f[name]; ok {
			t.Errorf("%s is %v without a run of RoC or an error to lose", name, v)
		}
	}
	if len(missed(f)) != 0 {
		t.Errorf("missed %v", missed(f))
	}
}

func TestSTaRReportsItsPlateau(t *testing.T) {
	r := finished(planned{"star", 1, false}, 0.5, 0.6, 60, 40)
	must(t, json.Unmarshal([]byte(`{"star": [{"stage": "s", "iterations": [{"score": 0.5}, {"score": 0.62, "steps": 40}, {"score": 0.61, "steps": 48}], "best": 1, "ended": "plateau"}]}`), &r.curves))
	b := &bench{table: theTable(t), key: "k"}
	f := b.figures([]result{r}, 9)
	for name, want := range map[string]float64{"star_1_iterations": 2, "star_1_best_iteration": 1, "star_1_score_base": 0.5, "star_1_score_best": 0.62, "star_1_plateau": 1} {
		if got, ok := f.number(name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, f[name], want)
		}
	}
	var out strings.Builder
	must(t, b.report(&out, []result{r}, f))
	if !strings.Contains(out.String(), "star-1: scores 50.0% 62.0% 61.0% (base first); iteration 1 is the best, after which it stood still") {
		t.Errorf("the report lacks the plateau:\n%s", out.String())
	}
	r.Evals = append(r.Evals, r.Evals[1]) // the best policy again, as the stage's own
	if xys := overEvals(func(e eval) float64 { return e.Pass1 })(r); len(xys) != 3 || xys[2].X != 20 || xys[1].X != 10 {
		t.Errorf("the curve is %v, want every step once and in order", xys)
	}
}

func TestChartsArePicturesOfAllRuns(t *testing.T) {
	b := &bench{table: theTable(t)}
	dir := t.TempDir()
	must(t, b.charts(dir, several()[:1]))
	alone := ink(t, filepath.Join(dir, "pass1.png"))
	must(t, b.charts(dir, several()))
	for _, name := range []string{"pass1", "tool_errors", "tool_errors_held_out", "reward", "response_tokens", "entropy", "samples-grpo-roc", "samples-grpo", "samples-dapo"} {
		if n := ink(t, filepath.Join(dir, name+".png")); n < 1000 {
			t.Errorf("%s.png has %d coloured points", name, n)
		}
	}
	if all := ink(t, filepath.Join(dir, "pass1.png")); all < 2*alone {
		t.Errorf("six runs have %d coloured points, one has %d", all, alone)
	}
}

// ink counts the points of a picture that are neither white nor grey.
func ink(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	must(t, err)
	n := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, g, b, _ := img.At(x, y).RGBA(); max(r, g, b)-min(r, g, b) > 0x1000 {
				n++
			}
		}
	}
	return n
}

func TestTheReportSaysWhichBarsHold(t *testing.T) {
	b := &bench{table: theTable(t), key: "k"}
	var out strings.Builder
	must(t, b.report(&out, several(), b.figures(several(), 8)))
	for _, want := range []string{"grpo-roc-1", "+35.0", "MISS  rl_pass1_min", "ok    rl_gain_points_min", "1 of 2 seeds over the whole run, and ends with more in 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

// standIn writes a program that stands for restar: it counts its calls, and leaves results unless told to fail.
func standIn(t *testing.T, dir string) string {
	t.Helper()
	r := several()[0]
	figures, err := json.Marshal(r.cost)
	must(t, err)
	curves, err := json.Marshal(r.curves)
	must(t, err)
	text := fmt.Sprintf("#!/bin/sh\necho \"$4\" >> %[1]s/calls\ntest -e %[1]s/fail && exit 1\ncat > \"$8\" <<'E'\n%[2]s\nE\ncat > \"${10}\" <<'E'\n%[3]s\nE\n", dir, figures, curves)
	path := filepath.Join(dir, "restar")
	must(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

func TestFinishedRunsAreSkippedAndFailedOnesAreMadeAgain(t *testing.T) {
	dir := t.TempDir()
	o := Options{Figures: filepath.Join(dir, "bench", "learn.json"), Recipe: learnRecipe, Restar: standIn(t, dir), Dir: filepath.Join(dir, "runs"), Key: "k", Short: true}
	run := func() error { return Run(t.Context(), o, new(strings.Builder), new(strings.Builder)) }
	calls := func() string {
		body, err := os.ReadFile(filepath.Join(dir, "calls"))
		must(t, err)
		return strings.Join(strings.Fields(string(body)), " ")
	}
	must(t, os.WriteFile(filepath.Join(dir, "fail"), nil, 0o600))
	if err := run(); err == nil || !strings.Contains(err.Error(), "grpo-roc-1") {
		t.Fatalf("error %v, want the run that failed", err)
	}
	must(t, os.Remove(filepath.Join(dir, "fail")))
	must(t, run())
	must(t, run())
	if got := calls(); got != "grpo-roc-1 grpo-roc-1 grpo-1" {
		t.Errorf("restar was called for %s, want each finished run made once", got)
	}
	for _, name := range []string{"learn.json", "learn/pass1.png"} {
		if _, err := os.Stat(filepath.Join(dir, "bench", name)); err != nil {
			t.Error(err)
		}
	}
	var drawn map[string]curves
	must(t, readJSON(filepath.Join(dir, "bench", "learn", "curves.json"), &drawn))
	if want := several()[0].curves; len(drawn) != 2 || !reflect.DeepEqual(drawn["grpo-1"], want) {
		t.Errorf("the curves in numbers are of %d runs, grpo-1 has %+v, want both and %+v", len(drawn), drawn["grpo-1"], want)
	}
	must(t, os.WriteFile(filepath.Join(dir, "runs", "k", "grpo-1", product.RecipeFile), []byte("another"), 0o600))
	if err := run(); err == nil || !strings.Contains(err.Error(), "remove "+filepath.Join(dir, "runs", "k", "grpo-1")) {
		t.Errorf("error %v, want a refusal of another recipe's results", err)
	}
	o.Key = "other"
	must(t, run())
	if got := calls(); !strings.HasSuffix(got, "grpo-1 grpo-roc-1 grpo-1") {
		t.Errorf("restar was called for %s, want new runs under another key", got)
	}
}
