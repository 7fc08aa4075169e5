package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// starWorld answers what a stage of STaR asks beside all that the others ask. scores are the shares of correct samples, by round.
type starWorld struct {
	world
	scores   []float64
	unsolved int
	nothing  bool // no solution is found
	kept     []activities.SolutionsInput
	recorded []activities.Iteration
}

func starRecipe() activities.Recipe {
	r := testRecipe()
	r.RL.Algorithm = "star"
	star := recipe.Star{Iterations: 4, FirstSteps: 2, Growth: 1.5, Batch: 4, Window: 1, Tolerance: 0.01, Score: recipe.ScoreTrain}
	r.Stages = []recipe.Stage{{Name: "star", Samples: 10, Prompts: 5, ResponseTokens: 64, Turns: 2, Star: &star}}
	return r
}

func newStarEnv(t *testing.T, w *starWorld) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	w.correct = func(in activities.SliceInput) int {
		if in.Purpose != activities.PurposeRollout || in.Slice != 0 {
			return 0
		}
		return int(10 * w.scores[in.Iteration-1]) // of the 10 samples of a prompt, 8 are of this slice
	}
	env := newEnv(t, &w.world)
	env.RegisterWorkflow(STaR)
	env.OnActivity(selector.Unsolved, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SolutionsInput) (activities.UnsolvedResult, error) {
		set := activities.Dataset{Ref: activities.Ref{Key: "unsolved"}, Problems: w.unsolved}
		return activities.UnsolvedResult{Problems: set, TooLong: 1}, w.ask("unsolved " + in.Stage)
	})
	env.OnActivity(selector.KeepSolutions, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SolutionsInput) (activities.SolutionsResult, error) {
		w.mu.Lock()
		w.kept = append(w.kept, in)
		w.mu.Unlock()
		out := activities.SolutionsResult{Batch: activities.Ref{Key: in.Stage}, Steps: in.Steps, Kept: 7, Groups: in.Prompts}
		if w.nothing {
			out.Kept, out.Steps = 0, 0
		}
		return out, w.ask(fmt.Sprintf("keep %s from step %d", in.Stage, in.Step))
	})
	env.OnActivity(scoring.RecordIteration, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.RecordInput) error {
		w.mu.Lock()
		w.recorded = append(w.recorded, in.Iteration)
		w.mu.Unlock()
		return w.ask(fmt.Sprintf("record %d", in.Iteration.Iteration))
	})
	return env
}

// runStar runs the recipe with rounds of these scores.
func runStar(t *testing.T, w *starWorld, r activities.Recipe) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	env := newStarEnv(t, w)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: r})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	return env
}

func resultOf(t *testing.T, env *testsuite.TestWorkflowEnvironment) (out RunResult) {
	t.Helper()
	if err := env.GetWorkflowResult(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// ordered leaves out checkpoints, which run beside what follows them.
func ordered(asked []string) []string {
	return slices.DeleteFunc(slices.Clone(asked), func(a string) bool { return strings.HasPrefix(a, "checkpoint") || strings.HasPrefix(a, "slice") })
}

func TestSTaRRestartsFromItsFirstPolicyUntilTheScoreStandsStill(t *testing.T) {
	w := &starWorld{scores: []float64{0.2, 0.5, 0.4}}
	env := runStar(t, w, starRecipe())
	want := []string{
		"curate", "prepare", "sft 0-2", "sft 2-4", "sft 4-5", "score sft",
		"record 0", "keep star.001 from step 1", "begin star.001", "train star.001 1", "train star.001 2",
		"record 1", "keep star.002 from step 3", "begin star.002", "train star.002 3", "train star.002 4", "train star.002 5",
		"record 2", "score star", "export star.001-000002", "report",
	}
	if got := ordered(w.asked); !slices.Equal(got, want) {
		t.Errorf("order\n got %q\nwant %q", got, want)
	}
	for i, b := range w.begun {
		if b.From.Version != "sft-000005" {
			t.Errorf("iteration %d begins from %s, want the stage's first policy", i+1, b.From.Version)
		}
	}
	for _, c := range []string{"checkpoint star.001 2", "checkpoint star.002 4", "checkpoint star.002 5"} {
		if n := count(w.asked, c); n != 1 {
			t.Errorf("%s asked %d times, want once", c, n)
		}
	}
	if out := resultOf(t, env); out.Weights.Version != "star.001-000002" {
		t.Errorf("the run ends with %s, want the policy of the best iteration", out.Weights.Version)
	}
	var versions []string
	for _, it := range w.recorded {
		versions = append(versions, fmt.Sprintf("%d %s %.1f %d", it.Iteration, it.Weights.Version, it.Score, it.Steps))
	}
	if want := []string{"0 sft-000005 0.2 0", "1 star.001-000002 0.5 2", "2 star.002-000005 0.4 3"}; !slices.Equal(versions, want) {
		t.Errorf("recorded %q, want %q", versions, want)
	}
}

func TestEveryIterationOfSTaRSamplesByThePolicyBeforeIt(t *testing.T) {
	w := &starWorld{scores: []float64{0.2, 0.5, 0.4}}
	runStar(t, w, starRecipe())
	seen := map[string]int{}
	for _, s := range w.slices {
		if s.Purpose == activities.PurposeRollout {
			seen[fmt.Sprintf("%s by %s, prompt %d of set", s.Stage, s.Weights.Version, s.Ordinal)] += s.Samples
		}
	}
	want := map[string]int{}
	for i, policy := range []string{"sft-000005", "star.001-000002", "star.002-000005"} {
		for p := range 5 { // of 20 problems
			want[fmt.Sprintf("star.%03d by %s, prompt %d of set", i+1, policy, 5*i+p)] = 10
		}
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("sampled %v, want %v", seen, want)
	}
}

func TestSTaREndsAfterItsLastIteration(t *testing.T) {
	w := &starWorld{scores: []float64{0.2, 0.4, 0.6, 0.8, 1}}
	env := runStar(t, w, starRecipe())
	if out := resultOf(t, env); out.Weights.Version != "star.004-000015" || len(w.recorded) != 5 { // 2, 3, 4 and 6 steps
		t.Errorf("ends with %s after %d scores, want the fourth iteration's policy after five", out.Weights.Version, len(w.recorded))
	}
}

func TestRationalizationSamplesUnsolvedProblemsAgain(t *testing.T) {
	w := &starWorld{scores: []float64{0.2, 0.1}, unsolved: 3}
	r := starRecipe()
	r.Stages[0].Star.Rationalize, r.Stages[0].Star.Hint = true, " {answer}"
	runStar(t, w, r)
	hints := 0
	for _, s := range w.slices {
		if s.Purpose == activities.PurposeHint {
			hints += s.Samples
			if s.Round != "000001-hint" || s.Problems.Key != "unsolved" || s.Ordinal > 2 || s.Weights.Version != "sft-000005" {
				t.Errorf("hinted slice %+v", s)
			}
		}
	}
	if hints != 30 || len(w.kept) != 1 || w.kept[0].Hinted.Problems != 3 {
		t.Errorf("%d hinted samples, kept %+v; want 10 of each of 3 problems in one iteration", hints, w.kept)
	}
	if w.recorded[1].TooLong != 1 {
		t.Errorf("recorded %+v, want the problem whose hint is too long", w.recorded[1])
	}
}

func TestSTaRMayBeScoredOnHeldOutProblems(t *testing.T) {
	w := &starWorld{scores: []float64{0.2, 0.5, 0.4}} // of rounds, which do not count here: every evaluation scores 0.4
	r := starRecipe()
	r.Stages[0].Star.Score = recipe.ScoreHeldOut
	env := runStar(t, w, r)
	want := []string{
		"score sft", "score star.000", "record 0", "keep star.001 from step 1", "begin star.001", "train star.001 1", "train star.001 2",
		"score star.001", "record 1", "score star", "export sft-000005", "report",
	}
	if got := ordered(w.asked)[5:]; !slices.Equal(got, want) {
		t.Errorf("order\n got %q\nwant %q", got, want)
	}
	if out := resultOf(t, env); out.Weights.Version != "sft-000005" {
		t.Errorf("ends with %s, want the first policy, which no iteration beat", out.Weights.Version)
	}
}

func TestAStageOfSTaRThatSolvesNothingSaysSo(t *testing.T) {
	w := &starWorld{scores: []float64{0}, nothing: true}
	env := runStar(t, w, starRecipe())
	v, err := env.QueryWorkflow(QueryProgress)
	var p Progress
	if err != nil || v.Get(&p) != nil || !strings.Contains(p.Problem, "solved no problem") {
		t.Errorf("progress %+v (%v), want a word on why the stage ended", p, err)
	}
	if len(w.steps) != 0 || resultOf(t, env).Weights.Version != "sft-000005" {
		t.Errorf("%d steps, %+v", len(w.steps), resultOf(t, env))
	}
}

func TestAStopWithinAnIterationOfSTaRKeepsItsStateAndGivesTheBest(t *testing.T) {
	w := &starWorld{scores: []float64{0.2, 0.5, 0.9, 1, 1}}
	env := newStarEnv(t, w)
	var once sync.Once
	w.onTrain = func() {
		if w.steps[len(w.steps)-1].Step != 3 {
			return
		}
		once.Do(func() {
			env.UpdateWorkflow(UpdateStop, "stop-1", &testsuite.TestUpdateCallback{
				OnAccept: func() {}, OnReject: func(err error) { t.Errorf("stop refused: %v", err) }, OnComplete: func(any, error) {},
			})
		})
	}
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: starRecipe()})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	out := resultOf(t, env)
	if !out.Stopped || out.Weights.Version != "star.001-000002" || len(w.steps) > 4 {
		t.Errorf("%+v after %d steps, want a stop within the second iteration with the policy of the first", out, len(w.steps))
	}
	last := w.steps[len(w.steps)-1].Step
	if count(w.asked, fmt.Sprintf("checkpoint star.002 %d", last)) < 1 {
		t.Errorf("asked %q, want a checkpoint of the last step %d", w.without("slice"), last)
	}
}

func TestAStageOfSTaRSplitByContinueAsNewEqualsAnUnsplitOne(t *testing.T) {
	start := STaRState{Run: "r", Recipe: starRecipe(), Base: activities.Weights{Stage: "sft", Version: "sft-000005"}, Problems: activities.Dataset{Problems: 20}}
	start.Recipe.Stages[0].Star.Rationalize, start.Recipe.Stages[0].Star.Hint = true, " {answer}"
	scores := []float64{0.2, 0.5, 0.4}
	whole := &starWorld{scores: scores, unsolved: 1}
	env := newStarEnv(t, whole)
	env.ExecuteWorkflow(STaR, start)
	var want ReinforceResult
	if err := errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&want)); err != nil {
		t.Fatal(err)
	}
	if want.Ended != "plateau" || want.Reward != 0.5 {
		t.Fatalf("%+v, want an end at the plateau with the best score", want)
	}
	split := &starWorld{scores: scores, unsolved: 1}
	state, parts := start, 0
	for {
		env := newStarEnv(t, split)
		env.SetContinueAsNewSuggested(true)
		env.ExecuteWorkflow(STaR, state)
		parts++
		var next *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &next) {
			var got ReinforceResult
			if err := errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&got)); err != nil || got != want {
				t.Fatalf("ends with %+v (%v), want %+v", got, err, want)
			}
			break
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &state); err != nil {
			t.Fatal(err)
		}
	}
	if parts != 10 { // a score, a restart and 2 or 3 steps an iteration, and the last score
		t.Errorf("%d histories, want 10", parts)
	}
	if !reflect.DeepEqual(whole.steps, split.steps) || !slices.Equal(ordered(whole.asked), ordered(split.asked)) {
		t.Errorf("split\n%q\nunsplit\n%q", ordered(split.asked), ordered(whole.asked))
	}
}

func TestTheStateOfSTaRSurvivesJSON(t *testing.T) {
	m := activities.StepMetrics{Step: 7, Reward: 0.25}
	it := activities.Iteration{Iteration: 1, Weights: activities.Weights{Stage: "star.001", Version: "v", Digest: "d"}, Score: 0.5, Steps: 2, TooLong: 1}
	state := STaRState{Run: "r", Recipe: starRecipe(), Base: it.Weights, Weights: it.Weights, Control: Control{Paused: true}, Begun: true, Iteration: 2, Step: 7,
		Policy: it, Scored: []activities.Iteration{it}, Training: true, Next: it, Solutions: activities.Ref{Key: "k", Digest: "d"},
		Timings: activities.Timings{Rollout: 1}, Applied: 1, Tokens: 5, Last: &m}
	body, err := json.Marshal(state)
	var back STaRState
	if err := errors.Join(err, json.Unmarshal(body, &back)); err != nil || !reflect.DeepEqual(state, back) {
		t.Errorf("changed over JSON (%v):\n%+v\n%+v", err, state, back)
	}
}
