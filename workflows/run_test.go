package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// world answers every activity of a run and remembers in which order they were asked.
type world struct {
	mu       sync.Mutex
	asked    []string
	slices   []activities.SliceInput
	steps    []activities.TrainInput
	begun    []activities.BeginStageInput
	empty    map[int]bool // rounds whose groups are all rejected
	failOnce map[string]error
	onTrain  func()
	// allCorrect is how many groups of every round were rejected since all their rewards were 1.
	allCorrect int
	// again holds the rounds after which another one is asked for; updates is how many steps a round gives, 0 is one.
	again   map[int]bool
	updates int
	chosen  []activities.SelectInput
	correct func(activities.SliceInput) int // samples of a slice; nil is none
}

func (w *world) ask(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, name)
	err := w.failOnce[name]
	delete(w.failOnce, name)
	return err
}

func testRecipe() activities.Recipe {
	r := recipe.Defaults()
	r.Version, r.Name, r.Seed = 1, "test", 7
	r.SFT.Steps, r.SFT.SaveEvery = 5, 2
	r.Eval = recipe.Eval{Problems: 3, Samples: 2, Tokens: 64, Turns: 2}
	r.Checkpoint.Every = 2
	r.Stages = []recipe.Stage{
		{Name: "stage1", Steps: 3, Prompts: 2, Samples: 12, Keep: 6, ResponseTokens: 64, Turns: 2},
		{Name: "stage2", Steps: 2, Prompts: 2, Samples: 4, Keep: 2, ResponseTokens: 64, Turns: 2, ResetOptimizer: true,
			Filter: &recipe.Filter{Samples: 4, Problems: 5}},
	}
	return r
}

func (w *world) install(env *testsuite.TestWorkflowEnvironment) {
	for _, wf := range []any{TrainingRun, Curate, FineTune, Reinforce, Rollout, Evaluate} {
		env.RegisterWorkflow(wf)
	}
	for _, a := range []any{&activities.Curation{}, &activities.Trainer{}, &activities.Rollouts{}, &activities.Selection{}, &activities.Scoring{}} {
		env.RegisterActivity(a)
	}
	set := activities.Dataset{Ref: activities.Ref{Key: "set"}, Problems: 20}
	env.OnActivity(curation.Curate, mock.Anything, mock.Anything).Return(func(context.Context, activities.CurateInput) (activities.CurateResult, error) {
		return activities.CurateResult{Train: set, HeldOut: set, Demos: set, Removed: map[string]int{"duplicate": 2, "bad_row": 1}}, w.ask("curate")
	})
	env.OnActivity(trainer.PrepareModel, mock.Anything, mock.Anything).Return(func(context.Context, activities.FineTuneInput) (activities.FineTuneResult, error) {
		return activities.FineTuneResult{Weights: activities.Weights{Stage: "sft", Version: "sft-000000"}}, w.ask("prepare")
	})
	env.OnActivity(trainer.FineTuneSteps, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.FineTuneInput) (activities.FineTuneResult, error) {
		return activities.FineTuneResult{Weights: activities.Weights{Stage: "sft", Version: fmt.Sprintf("sft-%06d", in.To)}}, w.ask(fmt.Sprintf("sft %d-%d", in.From, in.To))
	})
	env.OnActivity(trainer.BeginStage, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.BeginStageInput) (activities.Weights, error) {
		w.mu.Lock()
		w.begun = append(w.begun, in)
		w.mu.Unlock()
		return activities.Weights{Stage: in.Stage, Version: fmt.Sprintf("%s-%06d", in.Stage, in.Step)}, w.ask("begin " + in.Stage)
	})
	env.OnActivity(rollouts.Slice, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SliceInput) (activities.SliceResult, error) {
		w.mu.Lock()
		w.slices = append(w.slices, in)
		w.mu.Unlock()
		out := activities.SliceResult{Samples: in.Samples, Tokens: 10}
		if w.correct != nil {
			out.Correct = w.correct(in)
		}
		return out, w.ask(fmt.Sprintf("slice %s/%s/%d/%d", in.Stage, in.Round, in.Ordinal, in.Slice))
	})
	env.OnActivity(selector.SelectBatch, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SelectInput) (activities.SelectResult, error) {
		n := 4
		if w.empty[in.Iteration] {
			n = 0
		}
		w.mu.Lock()
		w.chosen = append(w.chosen, in)
		w.mu.Unlock()
		out := activities.SelectResult{Sequences: n, Groups: in.Prompts, AllCorrect: w.allCorrect, Again: w.again[in.Iteration], Batch: activities.Ref{Key: fmt.Sprintf("%d-0", in.Iteration)}}
		for u := 1; u < w.updates; u++ {
			out.More = append(out.More, activities.Ref{Key: fmt.Sprintf("%d-%d", in.Iteration, u)})
		}
		return out, w.ask(fmt.Sprintf("select %s %d step %d", in.Stage, in.Iteration, in.Step))
	})
	env.OnActivity(selector.FilterProblems, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.FilterInput) (activities.Dataset, error) {
		return activities.Dataset{Ref: activities.Ref{Key: "filtered"}, Problems: 3}, w.ask(fmt.Sprintf("filter %d", in.Tried))
	})
	env.OnActivity(trainer.TrainStep, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.TrainInput) (activities.TrainResult, error) {
		w.mu.Lock()
		w.steps = append(w.steps, in)
		w.mu.Unlock()
		if w.onTrain != nil {
			w.onTrain()
		}
		return activities.TrainResult{Weights: activities.Weights{Stage: in.Stage, Version: fmt.Sprintf("%s-%06d", in.Stage, in.Step)},
			Metrics: activities.StepMetrics{Step: in.Step, Reward: 0.5}}, w.ask(fmt.Sprintf("train %s %d", in.Stage, in.Step))
	})
	env.OnActivity(trainer.Checkpoint, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.CheckpointInput) error {
		return w.ask(fmt.Sprintf("checkpoint %s %d", in.Stage, in.Step))
	})
	env.OnActivity(trainer.PublishWeights, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.BeginStageInput) error {
		return w.ask("publish " + in.From.Version)
	})
	env.OnActivity(trainer.ExportModel, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.ExportInput) (activities.ExportResult, error) {
		return activities.ExportResult{}, w.ask("export " + in.Weights.Version)
	})
	env.OnActivity(scoring.Score, mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.ScoreInput) (activities.EvalResult, error) {
		return activities.EvalResult{Name: in.Name, Version: in.Weights.Version, Avg: 0.4}, w.ask("score " + in.Name)
	})
	env.OnActivity(scoring.WriteReport, mock.Anything, mock.Anything).Return(func(context.Context, activities.ReportInput) (activities.ReportResult, error) {
		return activities.ReportResult{Report: activities.Ref{Key: "report"}}, w.ask("report")
	})
}

func newEnv(t *testing.T, w *world) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	w.install(env)
	return env
}

// without drops the questions whose order is free.
func (w *world) without(prefix string) []string {
	var out []string
	for _, a := range w.asked {
		if len(a) < len(prefix) || a[:len(prefix)] != prefix {
			out = append(out, a)
		}
	}
	return out
}

func TestARunDoesItsWorkInThePapersOrder(t *testing.T) {
	w := &world{}
	env := newEnv(t, w)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"curate", "prepare", "sft 0-2", "sft 2-4", "sft 4-5", "score sft",
		"begin stage1", "select stage1 0 step 1", "train stage1 1", "select stage1 1 step 2", "train stage1 2", "checkpoint stage1 2",
		"select stage1 2 step 3", "train stage1 3", "checkpoint stage1 3", "score stage1",
		"begin stage2", "filter 5", "select stage2 0 step 4", "train stage2 4", "checkpoint stage2 4", "select stage2 1 step 5", "train stage2 5", "checkpoint stage2 5",
		"score stage2", "export stage2-000005", "report",
	}
	got := w.without("slice")
	sortFree := func(s []string) []string { // a checkpoint runs beside the round after it
		var out []string
		for _, a := range s {
			if len(a) < 10 || a[:10] != "checkpoint" {
				out = append(out, a)
			}
		}
		return out
	}
	if !reflect.DeepEqual(sortFree(got), sortFree(want)) {
		t.Errorf("order\n got %q\nwant %q", sortFree(got), sortFree(want))
	}
	for _, c := range []string{"checkpoint stage1 2", "checkpoint stage1 3", "checkpoint stage2 4", "checkpoint stage2 5"} {
		if n := count(got, c); n != 1 {
			t.Errorf("%s asked %d times, want once", c, n)
		}
	}
	var out RunResult
	if err := env.GetWorkflowResult(&out); err != nil || len(out.Evals) != 3 || out.Weights.Version != "stage2-000005" {
		t.Errorf("result %+v, %v", out, err)
	}
}

func count(list []string, want string) int {
	n := 0
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}

func TestEverySampleOfARoundBelongsToExactlyOneSlice(t *testing.T) {
	w := &world{}
	env := newEnv(t, w)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	seen := map[string]int{}
	for _, s := range w.slices {
		for i := range s.Samples {
			seen[fmt.Sprintf("%s/%s/%d/%d", s.Stage, s.Round, s.Ordinal, s.FirstSample+i)]++
		}
		if s.Samples > activities.SliceSamples || s.FirstSample != s.Slice*activities.SliceSamples {
			t.Errorf("slice %+v", s)
		}
	}
	for ordinal := range 6 { // three rounds of two prompts: the ordinal goes on
		for sample := range 12 {
			key := fmt.Sprintf("stage1/%06d/%d/%d", ordinal/2, ordinal, sample)
			if seen[key] != 1 {
				t.Errorf("sample %s made %d times, want once", key, seen[key])
			}
		}
	}
}

func TestARoundWithoutASurvivorCountsAndMakesNoStep(t *testing.T) {
	w := &world{empty: map[int]bool{1: true}}
	env := newEnv(t, w)
	r := testRecipe()
	r.Stages = r.Stages[:1]
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: r})
	var got []string
	for _, s := range w.steps {
		got = append(got, fmt.Sprintf("round %d step %d", s.Iteration, s.Step))
	}
	want := []string{"round 0 step 1", "round 2 step 2", "round 3 step 3"}
	if !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

func TestDynamicSamplingGoesOnWithTheNextPromptsOfTheSamePolicy(t *testing.T) {
	w := &world{again: map[int]bool{1: true, 2: true}}
	env := newEnv(t, w)
	r := testRecipe()
	r.Stages = r.Stages[:1]
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: r})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range w.chosen {
		got = append(got, fmt.Sprintf("round %d of %s from %d after %v for step %d", c.Iteration, c.Weights.Version, c.FirstOrdinal, c.Earlier, c.Step))
	}
	want := []string{
		"round 0 of stage1-000000 from 0 after [] for step 1", "round 1 of stage1-000001 from 2 after [] for step 2",
		"round 2 of stage1-000001 from 4 after [{1 2 2}] for step 2", "round 3 of stage1-000001 from 6 after [{1 2 2} {2 4 2}] for step 2",
		"round 4 of stage1-000002 from 8 after [] for step 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("chose\n%q, want\n%q", got, want)
	}
}

func TestAStopDuringDynamicSamplingIsHeededBetweenRounds(t *testing.T) {
	w := &world{again: map[int]bool{}}
	for round := 1; round < 50; round++ {
		w.again[round] = true
	}
	env := newEnv(t, w)
	var once sync.Once
	w.onTrain = func() {
		once.Do(func() {
			env.UpdateWorkflow(UpdateStop, "stop-1", &testsuite.TestUpdateCallback{
				OnAccept: func() {}, OnReject: func(err error) { t.Errorf("stop refused: %v", err) }, OnComplete: func(any, error) {},
			})
		})
	}
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	var out RunResult
	if err := env.GetWorkflowError(); err != nil || env.GetWorkflowResult(&out) != nil || !out.Stopped {
		t.Errorf("result %+v, %v: want a stopped run", out, err)
	}
	if len(w.steps) != 1 || len(w.chosen) > 5 {
		t.Errorf("%d steps and %d rounds, want one step and no round long after the stop", len(w.steps), len(w.chosen))
	}
}

func TestARoundsUpdatesFollowEachOtherAsFarAsTheStageGoes(t *testing.T) {
	w := &world{updates: 2}
	env := newEnv(t, w)
	r := testRecipe()
	r.Stages = r.Stages[:1]
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: r})
	var got []string
	for _, s := range w.steps {
		got = append(got, fmt.Sprintf("step %d: batch %s, update %d of round %d", s.Step, s.Batch.Key, s.Update, s.Iteration))
	}
	want := []string{"step 1: batch 0-0, update 0 of round 0", "step 2: batch 0-1, update 1 of round 0", "step 3: batch 1-0, update 0 of round 1"}
	if err := env.GetWorkflowError(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: steps %q, want %q", err, got, want)
	}
}

func TestAStageWithNothingLeftToLearnEnds(t *testing.T) {
	w := &world{empty: map[int]bool{}}
	for i := range 100 {
		w.empty[i] = true
	}
	env := newEnv(t, w)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(w.steps) != 0 || count(w.asked, "score stage2") != 1 {
		t.Errorf("%d steps, asked %q", len(w.steps), w.without("slice"))
	}
	// The second stage begins at its own step number although the first made none.
	if w.begun[1].Step != 3 || w.begun[1].From.Version != "stage1-000000" {
		t.Errorf("stage2 begins as %+v", w.begun[1])
	}
}

func TestALostWorkerCostsARetryAndABadInputEndsTheRun(t *testing.T) {
	w := &world{failOnce: map[string]error{"train stage1 2": errors.New("worker lost"), "curate": errors.New("store away")}}
	env := newEnv(t, w)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatalf("infrastructure ended the run: %v", err)
	}
	w = &world{failOnce: map[string]error{"curate": temporal.NewNonRetryableApplicationError("row 3 is bad", activities.ErrInput, nil)}}
	env = newEnv(t, w)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	said, ok := activities.IsInputError(env.GetWorkflowError())
	if !ok || said != "row 3 is bad" || count(w.asked, "curate") != 1 {
		t.Errorf("said %q (%v) after %q", said, ok, w.asked)
	}
}

func TestAFailedRoundSaysItsCause(t *testing.T) {
	w := &world{failOnce: map[string]error{"slice stage1/000001/2/0": temporal.NewNonRetryableApplicationError("problem 2 is too long", activities.ErrInput, nil)}}
	env := newEnv(t, w)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	if said, ok := activities.IsInputError(env.GetWorkflowError()); !ok || said != "problem 2 is too long" {
		t.Errorf("the run ended with %v, want the slice's own failure", env.GetWorkflowError())
	}
}

func TestMissingWeightsArePublishedAgain(t *testing.T) {
	gone := temporal.NewNonRetryableApplicationError("gone", activities.ErrMissingWeights, nil)
	w := &world{failOnce: map[string]error{"slice stage1/000001/2/0": gone}}
	env := newEnv(t, w)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if count(w.asked, "publish stage1-000001") != 1 || count(w.asked, "slice stage1/000001/2/0") != 2 {
		t.Errorf("asked %q", w.asked)
	}
}

func TestStopEndsAfterTheStepAndReports(t *testing.T) {
	w := &world{}
	env := newEnv(t, w)
	var once sync.Once
	w.onTrain = func() {
		once.Do(func() {
			env.UpdateWorkflow(UpdateStop, "stop-1", &testsuite.TestUpdateCallback{
				OnAccept: func() {}, OnReject: func(err error) { t.Errorf("stop refused: %v", err) }, OnComplete: func(any, error) {},
			})
		})
	}
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var out RunResult
	if err := env.GetWorkflowResult(&out); err != nil || !out.Stopped {
		t.Errorf("result %+v, %v: want a stopped run", out, err)
	}
	if len(w.steps) > 2 || count(w.asked, "report") != 1 {
		t.Errorf("%d steps after the stop, asked %q", len(w.steps), w.without("slice"))
	}
}

func TestAPausedRunWaitsAndAResumedOneGoesOn(t *testing.T) {
	w := &world{}
	env := newEnv(t, w)
	ask := func(name string) {
		env.UpdateWorkflow(name, name+"-1", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Errorf("%s refused: %v", name, err) }, OnComplete: func(any, error) {},
		})
	}
	var once sync.Once
	w.onTrain = func() { once.Do(func() { ask(UpdatePause) }) }
	waited := -1
	env.RegisterDelayedCallback(func() {
		w.mu.Lock()
		waited = len(w.steps)
		w.mu.Unlock()
		ask(UpdateResume)
	}, 5*time.Hour)
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: testRecipe()})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if waited < 1 || waited > 2 {
		t.Errorf("%d steps while paused, want the one in progress and at most one more", waited)
	}
	if len(w.steps) != 5 {
		t.Errorf("%d steps after resuming, want all 5", len(w.steps))
	}
}

func TestAStageEndsWhenItsProblemsAreSolved(t *testing.T) {
	w := &world{allCorrect: 2}
	env := newEnv(t, w)
	r := testRecipe()
	r.Stages[0].MaxAllCorrect, r.Stages[0].Window = 0.7, 2
	env.ExecuteWorkflow(TrainingRun, RunInput{Run: "r", Recipe: r})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if got := count(w.asked, "train stage1 2"); got != 1 || count(w.asked, "train stage1 3") != 0 {
		t.Errorf("asked %q: want the stage to end after the two rounds of its window", w.without("slice"))
	}
}

func TestSenselessWishesAreRefused(t *testing.T) {
	run := &trainingRun{RunInput: RunInput{Run: "r"}}
	if err := run.mayResume(); err == nil {
		t.Error("a run that is not paused can be resumed")
	}
	run.control.Paused = true
	if err := run.mayPause(); err == nil {
		t.Error("a paused run can be paused")
	}
	run.control.Stopped = true
	if err := run.mayStop(); err == nil {
		t.Error("a stopping run can be stopped")
	}
}

func TestStateSurvivesContinueAsNew(t *testing.T) {
	m := activities.StepMetrics{Step: 7, Reward: 0.25}
	for _, state := range []any{
		&ReinforceState{Run: "r", Recipe: testRecipe(), Index: 1, Weights: activities.Weights{Stage: "a", Version: "b", Digest: "c"}, Control: Control{Paused: true},
			Begun: true, Iteration: 9, Ordinal: 18, Step: 7, Empty: 1, Tokens: 99, Last: &m},
		&FineTuneState{Run: "r", Recipe: testRecipe(), Prepared: true, Done: 4, Tokens: 5},
		&RolloutState{Slice: activities.SliceInput{Run: "r", Ordinal: 3}, Prompts: 4, Samples: 12, Next: 2, Counts: activities.SliceResult{Samples: 8}},
	} {
		body, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(state).Elem()).Interface()
		if err := json.Unmarshal(body, back); err != nil || !reflect.DeepEqual(state, back) {
			t.Errorf("%T changed over JSON (%v):\n%+v\n%+v", state, err, state, back)
		}
	}
}

func TestARunSplitByContinueAsNewEqualsAnUnsplitOne(t *testing.T) {
	whole := &world{}
	env := newEnv(t, whole)
	start := ReinforceState{Run: "r", Recipe: testRecipe(), Weights: activities.Weights{Stage: "sft", Version: "sft-000005"}, Problems: activities.Dataset{Problems: 20}}
	env.ExecuteWorkflow(Reinforce, start)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	split := &world{}
	start.Recipe.Eval.EverySteps = 1
	state, parts := start, 0
	for {
		env := newEnv(t, split)
		env.SetContinueAsNewSuggested(true)
		env.ExecuteWorkflow(Reinforce, state)
		parts++
		var next *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &next) {
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			break
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &state); err != nil {
			t.Fatal(err)
		}
	}
	if parts != 4 {
		t.Errorf("%d histories, want one a step and the end", parts)
	}
	if got := count(split.asked, "score stage1-step-000001"); got != 1 {
		t.Errorf("the evaluation beside the first step was scored %d times, want once", got)
	}
	if !reflect.DeepEqual(whole.steps, split.steps) {
		t.Errorf("steps differ:\n%+v\n%+v", whole.steps, split.steps)
	}
}
