package workflows

import (
	"fmt"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/recipe"
	"go.temporal.io/sdk/workflow"
)

// nothingKept ends a stage of STaR whose policy solves no problem: there is nothing to fine-tune on.
const nothingKept = "nothing-kept"

// STaRState is all that a stage of STaR knows; continue-as-new hands it on unchanged.
type STaRState struct {
	Run      string             `json:"run"`
	Recipe   activities.Recipe  `json:"recipe"`
	Index    int                `json:"stage_index"`
	Problems activities.Dataset `json:"problems"`
	HeldOut  activities.Dataset `json:"held_out"`
	Base     activities.Weights `json:"base"`    // what every iteration starts from
	Weights  activities.Weights `json:"weights"` // the policy that samples next: the base's, or of the iteration before
	Control  Control            `json:"control"`

	Begun     bool                    `json:"begun"`
	Iteration int                     `json:"iteration"` // at work on, from 1
	Step      int64                   `json:"step"`      // applied optimizer steps of the run
	Policy    activities.Iteration    `json:"policy"`    // what Weights were trained on, before their score is known
	Scored    []activities.Iteration  `json:"scored"`    // every policy that has a score, the base first
	Training  bool                    `json:"training"`  // Next and Solutions are the iteration's, and its first state is durable
	Next      activities.Iteration    `json:"next"`
	Solutions activities.Ref          `json:"solutions"`
	Timings   activities.Timings      `json:"timings"` // of the iteration's round
	Applied   int                     `json:"applied"` // of Next.Steps
	Tokens    int64                   `json:"tokens"`
	Last      *activities.StepMetrics `json:"last,omitempty"`
}

// STaR is one stage of self-taught reasoning (Zelikman et al. 2022, Alg 1): sample, keep what is right, fine-tune the stage's
// first policy on it, and again with the result, until its score stands still. The best policy is the stage's.
func STaR(ctx workflow.Context, s STaRState) (ReinforceResult, error) {
	r := &selfTaught{STaRState: s}
	r.p = Progress{Run: s.Run, Stage: r.stage().Name, Steps: int64(r.stage().MostSteps())}
	if err := answer(ctx, &r.p); err != nil {
		return ReinforceResult{}, err
	}
	if err := label(ctx, s.Run, r.stage().Name); err != nil {
		return ReinforceResult{}, err
	}
	r.Control.listen(ctx, func(workflow.Context) { r.p.Paused, r.p.Stopping = r.Control.Paused, r.Control.Stopped })
	if !r.Begun {
		r.Begun, r.Iteration, r.Step, r.Weights = true, 1, int64(r.Recipe.FirstStep(r.Index)), r.Base
	}
	return r.loop(ctx)
}

// selfTaught is a stage of STaR at work: its state and what it shows.
type selfTaught struct {
	STaRState
	p      Progress
	saving workflow.Future // the checkpoint under way, off the critical path
}

func (r *selfTaught) stage() activities.Stage { return r.Recipe.Stages[r.Index] }

// name is what the store calls the iteration at work.
func (r *selfTaught) name() string { return r.stage().Iteration(r.Iteration) }

func (r *selfTaught) loop(ctx workflow.Context) (ReinforceResult, error) {
	for {
		r.show(ctx)
		stop, err := r.Control.gate(ctx)
		if err != nil {
			return ReinforceResult{}, err
		}
		if stop {
			return r.end(ctx, "stopped")
		}
		ended, err := r.advance(ctx)
		if err != nil {
			return ReinforceResult{}, err
		}
		if ended != "" {
			return r.end(ctx, ended)
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return ReinforceResult{}, r.continueAsNew(ctx)
		}
	}
}

// advance makes an iteration ready to train, or applies the next of its steps. ended tells why there are no more.
func (r *selfTaught) advance(ctx workflow.Context) (ended string, err error) {
	switch {
	case !r.Training && len(r.Scored) < r.Iteration:
		return r.score(ctx)
	case !r.Training:
		return r.restart(ctx)
	}
	return "", r.train(ctx)
}

// score measures the policy that samples next, and ends the stage where scores stand still.
func (r *selfTaught) score(ctx workflow.Context) (ended string, err error) {
	it := r.Policy
	it.Iteration, it.Weights = r.Iteration-1, r.Weights
	if r.stage().Star.Score == recipe.ScoreHeldOut {
		it.Score, err = r.evaluate(ctx)
	} else {
		it.Score, err = r.sample(ctx)
	}
	if err != nil {
		return "", err
	}
	in := activities.RecordInput{Run: r.Run, Stage: r.stage().Name, Iteration: it}
	to := on(ctx, activities.QueueCPU, shortWork, "iteration %d scores %.3f", it.Iteration, it.Score)
	if err := workflow.ExecuteActivity(to, scoring.RecordIteration, in).Get(ctx, nil); err != nil {
		return "", err
	}
	r.Scored = append(r.Scored, it)
	return activities.STaREnds(r.stage(), activities.Scores(r.Scored)), nil
}

// evaluate scores the policy on held-out problems.
func (r *selfTaught) evaluate(ctx workflow.Context) (float64, error) {
	name := r.stage().Iteration(r.Iteration - 1)
	r.p.Phase, r.p.Child = PhaseEvaluate, EvaluateID(r.Run, name)
	in := EvaluateInput{Run: r.Run, Recipe: r.Recipe, Name: name, Stage: name, StageIndex: r.Index, Weights: r.Weights, Problems: r.HeldOut}
	var got activities.EvalResult
	child := as(ctx, r.p.Child, "evaluate %s on held-out problems", r.Weights.Version)
	err := workflow.ExecuteChildWorkflow(child, Evaluate, in).Get(ctx, &got)
	r.p.Child = ""
	return got.Avg, err
}

// sample makes the iteration's round and returns the share of its samples that are correct.
func (r *selfTaught) sample(ctx workflow.Context) (float64, error) {
	begin := workflow.Now(ctx)
	first, prompts := activities.STaRRound(r.stage(), r.Iteration, r.Problems.Problems)
	state := RolloutState{Slice: r.slice(activities.PurposeRollout, fmt.Sprintf("%06d", r.Iteration), r.Problems), Prompts: prompts, Samples: r.stage().Samples}
	state.Slice.Ordinal = first
	counts, err := r.rollout(ctx, PhaseRollout, state)
	r.Timings = activities.Timings{Rollout: workflow.Now(ctx).Sub(begin).Seconds()}
	return float64(counts.Correct) / float64(max(counts.Samples, 1)), err
}

func (r *selfTaught) rollout(ctx workflow.Context, phase string, state RolloutState) (activities.SliceResult, error) {
	r.p.Phase, r.p.Child = phase, RolloutID(r.Run, r.name(), state.Slice.Round)
	var counts activities.SliceResult
	child := as(ctx, r.p.Child, "%d prompts, %d samples each, weights %s", state.Prompts, state.Samples, r.Weights.Version)
	err := workflow.ExecuteChildWorkflow(child, Rollout, state).Get(ctx, &counts)
	r.p.Child = ""
	r.Tokens += counts.Tokens
	return counts, err
}

func (r *selfTaught) slice(purpose, round string, problems activities.Dataset) activities.SliceInput {
	s := r.stage()
	return activities.SliceInput{
		Run: r.Run, Stage: r.name(), StageIndex: r.Index, Purpose: purpose, Round: round, Iteration: r.Iteration,
		Problems: problems, Weights: r.Weights, Tokens: s.ResponseTokens, Turns: s.Turns, Temperature: r.Recipe.RL.Temperature,
	}
}

// restart chooses what the iteration trains on, and begins it from the base.
func (r *selfTaught) restart(ctx workflow.Context) (ended string, err error) {
	if r.stage().Star.Score == recipe.ScoreHeldOut {
		if _, err := r.sample(ctx); err != nil {
			return "", err
		}
	}
	kept, err := r.keep(ctx)
	if err != nil {
		return "", err
	}
	if kept.Kept == 0 {
		return nothingKept, nil
	}
	if err := r.saved(ctx); err != nil { // of the iteration before, whose state the trainer is about to drop
		return "", err
	}
	in := activities.BeginStageInput{Run: r.Run, Stage: r.name(), StageIndex: r.Index, From: r.Base, Step: r.Step}
	to := on(ctx, activities.QueueTrainer, shortWork, "restart from %s for iteration %d", r.Base.Version, r.Iteration)
	if err := workflow.ExecuteActivity(to, trainer.BeginStage, in).Get(ctx, nil); err != nil {
		return "", err
	}
	r.Training, r.Applied, r.Solutions = true, 0, kept.Batch
	return "", nil
}

// keep samples unsolved problems again with hints, if the recipe says so, and makes the solutions durable.
func (r *selfTaught) keep(ctx workflow.Context) (out activities.SolutionsResult, err error) {
	r.p.Phase = PhaseSelect
	first, prompts := activities.STaRRound(r.stage(), r.Iteration, r.Problems.Problems)
	in := activities.SolutionsInput{Problems: r.Problems, SelectInput: activities.SelectInput{
		Run: r.Run, Stage: r.name(), StageIndex: r.Index, Iteration: r.Iteration, Step: r.Step + 1, FirstOrdinal: first, Prompts: prompts, Weights: r.Weights,
	}}
	if in.Steps, err = activities.STaRSteps(r.stage(), r.Iteration); err != nil {
		return out, err
	}
	var unsolved activities.UnsolvedResult
	if r.stage().Star.Rationalize {
		if unsolved, err = r.hint(ctx, in); err != nil {
			return out, err
		}
		in.Hinted = unsolved.Problems
	}
	r.p.Phase = PhaseSelect
	to := on(ctx, activities.QueueCPU, shortWork, "keep the solutions of iteration %d", r.Iteration)
	err = workflow.ExecuteActivity(to, selector.KeepSolutions, in).Get(ctx, &out)
	r.Next = activities.Iteration{
		Iteration: r.Iteration, Steps: out.Steps, Problems: out.Groups, Solved: out.Solved, Hinted: out.Hinted, Rationalized: out.Rationalized,
		TooLong: unsolved.TooLong, Unknown: out.Unknown, Solutions: out.Kept,
	}
	out.Timings.Rollout = r.Timings.Rollout
	r.Timings = out.Timings
	return out, err
}

// hint samples the problems that the round did not solve again, with their answers.
func (r *selfTaught) hint(ctx workflow.Context, in activities.SolutionsInput) (out activities.UnsolvedResult, err error) {
	to := on(ctx, activities.QueueCPU, shortWork, "find the unsolved problems of iteration %d", r.Iteration)
	if err := workflow.ExecuteActivity(to, selector.Unsolved, in).Get(ctx, &out); err != nil || out.Problems.Problems == 0 {
		return out, err
	}
	state := RolloutState{
		Slice:   r.slice(activities.PurposeHint, activities.HintRound(r.Iteration), out.Problems),
		Prompts: out.Problems.Problems, Samples: r.stage().Samples,
	}
	_, err = r.rollout(ctx, PhaseRollout, state)
	return out, err
}

// train applies the next step of the iteration. The last one makes a policy.
func (r *selfTaught) train(ctx workflow.Context) error {
	r.p.Phase = PhaseTrain
	in := activities.TrainInput{
		Run: r.Run, Stage: r.name(), StageIndex: r.Index, Iteration: r.Iteration, Update: r.Applied, Step: r.Step + 1, Batch: r.Solutions, Timings: r.Timings,
	}
	var out activities.TrainResult
	to := on(ctx, activities.QueueTrainer, longWork, "step %d: %d of %d of iteration %d", in.Step, r.Applied+1, r.Next.Steps, r.Iteration)
	if err := workflow.ExecuteActivity(to, trainer.TrainStep, in).Get(ctx, &out); err != nil {
		return err
	}
	r.Step, r.Applied, r.Last, r.Timings = in.Step, r.Applied+1, &out.Metrics, activities.Timings{} // the round counts once
	done := r.Applied == r.Next.Steps
	if done || r.Step%int64(r.Recipe.Checkpoint.Every) == 0 {
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	if done {
		r.Weights, r.Policy, r.Training = out.Weights, r.Next, false
		r.Iteration++
	}
	return workflow.UpsertTypedSearchAttributes(ctx, attrStep.ValueSet(r.Step), attrReward.ValueSet(out.Metrics.Reward))
}

// save waits for the checkpoint before, then starts the next.
func (r *selfTaught) save(ctx workflow.Context) error {
	if err := r.saved(ctx); err != nil {
		return err
	}
	in := activities.CheckpointInput{Run: r.Run, Stage: r.name(), StageIndex: r.Index, Step: r.Step}
	r.saving = workflow.ExecuteActivity(on(ctx, activities.QueueTrainer, longWork, "checkpoint step %d", r.Step), trainer.Checkpoint, in)
	return nil
}

func (r *selfTaught) saved(ctx workflow.Context) error {
	if r.saving == nil {
		return nil
	}
	err := r.saving.Get(ctx, nil)
	r.saving = nil
	return err
}

// best is the policy with the best score so far. Before any has one it is the base.
func (r *selfTaught) best() activities.Iteration {
	if len(r.Scored) == 0 {
		return activities.Iteration{Weights: r.Base}
	}
	return r.Scored[activities.STaRBest(activities.Scores(r.Scored))]
}

// end gives the best policy. A stop in the midst of an iteration saves its state, for the same run started again.
func (r *selfTaught) end(ctx workflow.Context, ended string) (ReinforceResult, error) {
	if r.Training && r.Applied > 0 {
		if err := r.save(ctx); err != nil {
			return ReinforceResult{}, err
		}
	}
	if err := r.saved(ctx); err != nil {
		return ReinforceResult{}, err
	}
	r.describe(ctx, ended)
	best := r.best()
	return ReinforceResult{Problems: r.Problems, Weights: best.Weights, Step: r.Step, Tokens: r.Tokens, Reward: best.Score, Ended: ended}, nil
}

// continueAsNew starts a fresh history with nothing left under way.
func (r *selfTaught) continueAsNew(ctx workflow.Context) error {
	if err := r.saved(ctx); err != nil {
		return err
	}
	r.Control.drain(ctx)
	return workflow.NewContinueAsNewError(ctx, STaR, r.STaRState)
}

func (r *selfTaught) show(ctx workflow.Context) {
	r.p.Step, r.p.Tokens, r.p.Last = r.Step-int64(r.Recipe.FirstStep(r.Index)), r.Tokens, r.Last
	r.describe(ctx, "")
}

// describe writes where the stage is, with the scores of its policies, for people who look at it in the UI.
func (r *selfTaught) describe(ctx workflow.Context, ended string) {
	text := fmt.Sprintf("**%s** · iteration %d of at most %d", r.stage().Name, r.Iteration, r.stage().Star.Iterations)
	switch {
	case ended != "":
		text = fmt.Sprintf("**%s** · ended: %s · the best is iteration %d, `%s`", r.stage().Name, ended, r.best().Iteration, r.best().Weights.Version)
	case r.Training:
		text += fmt.Sprintf(" · step %d of %d on %d solutions", r.Applied, r.Next.Steps, r.Next.Solutions)
	}
	text += "\n"
	if len(r.Scored) > 0 {
		text += "\n| iteration | score | steps | solutions | solved | rationalized |\n|---|---|---|---|---|---|\n"
	}
	for _, it := range r.Scored[max(0, len(r.Scored)-shownIterations):] {
		text += fmt.Sprintf("| %d | %.1f%% | %d | %d | %d of %d | %d |\n", it.Iteration, 100*it.Score, it.Steps, it.Solutions, it.Solved, it.Problems, it.Rationalized)
	}
	workflow.SetCurrentDetails(ctx, text)
}

// shownIterations bounds the table: the server keeps details small.
const shownIterations = 30
