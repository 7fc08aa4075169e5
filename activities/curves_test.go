package activities

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
)

func TestCurvesHoldEveryEvaluationAndStepInOrder(t *testing.T) {
	st, p := toyRun(t)
	tidy, clumsy := right(), right()
	tidy.calls, clumsy.calls, clumsy.errors = 1, 3, 1
	busy := ended{outcome: agent.Wrong, answer: "9", calls: 8, errors: 8}
	scored(t, st, []ended{tidy, clumsy, busy, busy}, []ended{tidy, busy, busy, busy})
	for i, step := range []int64{2, 1} { // a second update of a round has the later step and the earlier place in a list
		body, err := json.Marshal(StepMetrics{Stage: "one", Step: step, CorrectCalls: 4, CorrectErrors: 1})
		must(t, err)
		put(t, st, store.MetricsKey(benchRun, "one", i, 0), body)
	}
	got, err := ReadCurves(t.Context(), st, benchRun, toyRecipe(t))
	must(t, err)
	if len(got.Steps) != 2 || got.Steps[0].Step != 1 || got.Steps[1].Step != 2 {
		t.Errorf("steps %+v, want 1 and 2", got.Steps)
	}
	if len(got.Evals) != 1 {
		t.Fatalf("%d evaluations, want 1", len(got.Evals))
	}
	e := got.Evals[0]
	if e.Name != "mid" || e.Version != p.first.Version || e.Step != 0 || len(e.PassAt) != 4 || len(e.MajAt) != 4 {
		t.Errorf("%+v, want 4 scores of each kind before any step", e)
	}
	for what, c := range map[string][2]float64{
		"errors in correct trajectories": {e.ToolErrorCorrect, 1. / 5}, "pass@1": {e.PassAt[0], e.Avg}, "pass@4": {e.PassAt[3], e.Pass},
		"maj@1": {e.MajAt[0], e.Avg}, "maj@4": {e.MajAt[3], e.Maj}, "pass@2": {e.PassAt[1], (5./6 + 1./2) / 2},
	} {
		if math.Abs(c[0]-c[1]) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, c[0], c[1])
		}
	}
}

func TestCurvesSayWhichIterationOfSTaRIsBestAndWhatEndedIt(t *testing.T) {
	rec := toyRecipe(t)
	rec.Stages[0].Star = &recipe.Star{Iterations: 5, FirstSteps: 4, Growth: 1, Batch: 2, Window: 1, Tolerance: 0.01}
	for name, c := range map[string]struct {
		scores []float64
		best   int
	}{"plateau": {[]float64{0.5, 0.62, 0.625}, 2}, "": {[]float64{0.5, 0.7}, 1}, "iterations": {[]float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, 5}} {
		st := store.NewMemory()
		for i, score := range c.scores {
			body, err := json.Marshal(Iteration{Iteration: i, Score: score})
			must(t, err)
			put(t, st, store.ArtifactKey(benchRun, "one", fmt.Sprintf("%s%03d.json", iterationName, i)), body)
		}
		got, err := ReadCurves(t.Context(), st, benchRun, rec)
		must(t, err)
		if len(got.Star) != 1 || got.Star[0].Stage != "one" || len(got.Star[0].Iterations) != len(c.scores) || got.Star[0].Best != c.best || got.Star[0].Ended != name {
			t.Errorf("%+v, want the best at %d and the end %q", got.Star, c.best, name)
		}
	}
}

func TestABatchCountsTheErrorsOfCorrectTrajectories(t *testing.T) {
	st, _ := toyRun(t)
	clumsy := right()
	clumsy.calls, clumsy.errors = 3, 1
	in := SliceInput{Run: benchRun, Stage: "one", Purpose: PurposeRollout, Round: store.IterationGroup(0)}
	putGroup(t, st, in, []ended{right(), clumsy, {outcome: agent.Wrong, answer: "9", calls: 8, errors: 8}}, asMade)
	g, err := readGroup(t.Context(), st, in, 3)
	must(t, err)
	var b batch
	b.observe(g)
	if want := 3 + right().calls; b.CorrectCalls != want || b.CorrectErrors != 1+right().errors {
		t.Errorf("%d errors of %d calls, want 1 of %d", b.CorrectErrors, b.CorrectCalls, want)
	}
}
