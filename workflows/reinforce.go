package workflows

import (
	"fmt"

	"github.com/restar-rl/restar/activities"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
)

// emptyRounds ends a stage whose policy no longer disagrees with itself: after this many rounds in a row without a
// single mixed group nothing is left to learn from its problems.
const emptyRounds = 10

// ReinforceState is all that a stage knows; continue-as-new hands it on unchanged.
type ReinforceState struct {
	Run      string             `json:"run"`
	Recipe   activities.Recipe  `json:"recipe"`
	Index    int                `json:"stage_index"`
	Problems activities.Dataset `json:"problems"`
	HeldOut  activities.Dataset `json:"held_out"`
	Weights  activities.Weights `json:"weights"` // the policy that samples next
	Control  Control            `json:"control"`

	Begun     bool                    `json:"begun"`
	Iteration int                     `json:"iteration"`      // next rollout round; always advances
	Ordinal   int                     `json:"ordinal"`        // next prompt
	Step      int64                   `json:"step"`           // applied optimizer steps of the run
	Empty     int                     `json:"empty"`          // rounds in a row without a step
	Easy      []float64               `json:"easy,omitempty"` // share of all-correct groups in the latest rounds, oldest first
	Tokens    int64                   `json:"tokens"`
	Last      *activities.StepMetrics `json:"last,omitempty"`
}

// ReinforceResult is where a stage ended.
type ReinforceResult struct {
	Problems activities.Dataset `json:"problems"`
	Weights  activities.Weights `json:"weights"`
	Step     int64              `json:"step"`
	Tokens   int64              `json:"tokens"`
	Reward   float64            `json:"reward"` // of the last round with a step; of STaR the best score
	Ended    string             `json:"ended"`  // steps, all-correct, saturated or stopped; of STaR plateau, iterations, nothing-kept or stopped
}

// Reinforce is one stage of reinforcement learning: sample a round, choose a batch, apply one step, publish, repeat.
func Reinforce(ctx workflow.Context, s ReinforceState) (ReinforceResult, error) {
	r := &reinforcement{ReinforceState: s}
	r.p = Progress{Run: s.Run, Stage: r.stage().Name, Steps: int64(r.stage().Steps)}
	if err := answer(ctx, &r.p); err != nil {
		return ReinforceResult{}, err
	}
	if err := label(ctx, s.Run, r.stage().Name); err != nil {
		return ReinforceResult{}, err
	}
	r.Control.listen(ctx, func(workflow.Context) { r.p.Paused, r.p.Stopping = r.Control.Paused, r.Control.Stopped })
	if !r.Begun {
		if err := r.begin(ctx); err != nil {
			return ReinforceResult{}, err
		}
	}
	return r.loop(ctx)
}

// reinforcement is a stage at work: its state and what it shows.
type reinforcement struct {
	ReinforceState
	p      Progress
	saving workflow.Future   // the checkpoint under way, off the critical path
	evals  []workflow.Future // evaluations started beside training
}

func (r *reinforcement) stage() activities.Stage { return r.Recipe.Stages[r.Index] }

func (r *reinforcement) last() int64 { return int64(r.Recipe.FirstStep(r.Index) + r.stage().Steps) }

// begin takes over the policy of the stage before and, if the recipe says so, drops the problems it always solves.
func (r *reinforcement) begin(ctx workflow.Context) error {
	r.Step = int64(r.Recipe.FirstStep(r.Index))
	in := activities.BeginStageInput{Run: r.Run, Stage: r.stage().Name, StageIndex: r.Index, From: r.Weights, Step: r.Step}
	on := on(ctx, activities.QueueTrainer, shortWork, "begin %s from %s", r.stage().Name, r.Weights.Version)
	if err := workflow.ExecuteActivity(on, trainer.BeginStage, in).Get(ctx, &r.Weights); err != nil {
		return err
	}
	if r.stage().Filter != nil {
		if err := r.filter(ctx); err != nil {
			return err
		}
	}
	r.Begun = true
	return nil
}

func (r *reinforcement) loop(ctx workflow.Context) (ReinforceResult, error) {
	for ended := ""; ; {
		r.show(ctx)
		stop, err := r.Control.gate(ctx)
		if err != nil {
			return ReinforceResult{}, err
		}
		switch {
		case r.Step >= r.last():
			ended = "steps"
		case stop:
			ended = "stopped"
		case r.Empty >= emptyRounds:
			ended = "saturated"
		case activities.StageEnds(r.stage(), r.Easy):
			ended = "all-correct"
		}
		if ended != "" {
			return r.end(ctx, ended)
		}
		if err := r.round(ctx); err != nil {
			return ReinforceResult{}, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return ReinforceResult{}, r.continueAsNew(ctx)
		}
	}
}

// round samples by one policy until there is a batch, most often once, and then applies its optimizer steps: one as a rule, none if
// every group was rejected.
func (r *reinforcement) round(ctx workflow.Context) error {
	begin := workflow.Now(ctx)
	var earlier []activities.Round
	var chosen activities.SelectResult
	for {
		counts, err := r.sample(ctx)
		if err != nil {
			return err
		}
		r.Tokens += counts.Tokens
		took := workflow.Now(ctx).Sub(begin)
		this := activities.Round{Iteration: r.Iteration, FirstOrdinal: r.Ordinal, Prompts: r.stage().Prompts}
		if chosen, err = r.choose(ctx, earlier); err != nil {
			return err
		}
		chosen.Timings.Rollout = took.Seconds()
		r.Iteration++
		r.Ordinal += this.Prompts
		if !chosen.Again {
			break
		}
		earlier = append(earlier, this)
		stop, err := r.Control.gate(ctx)
		if err != nil || stop {
			return err // the stage ends without the batch that is not full; the same run started again samples on from here
		}
	}
	r.observe(chosen)
	if chosen.Sequences == 0 {
		r.Empty++
		return nil
	}
	r.Empty = 0
	return r.update(ctx, chosen)
}

// update applies the round's optimizer steps, as far as the stage has any left.
func (r *reinforcement) update(ctx workflow.Context, chosen activities.SelectResult) error {
	for i, batch := range append([]activities.Ref{chosen.Batch}, chosen.More...) {
		if r.Step >= r.last() {
			return nil
		}
		if err := r.train(ctx, chosen, batch, i); err != nil {
			return err
		}
		if err := r.aside(ctx); err != nil {
			return err
		}
		r.show(ctx)
	}
	return nil
}

// observe keeps what the rule of a stage's end reads of its latest rounds.
func (r *reinforcement) observe(chosen activities.SelectResult) {
	r.Easy = append(r.Easy, float64(chosen.AllCorrect)/float64(max(chosen.Groups, 1)))
	if window := max(r.stage().Window, 1); len(r.Easy) > window {
		r.Easy = r.Easy[len(r.Easy)-window:]
	}
}

func (r *reinforcement) sample(ctx workflow.Context) (activities.SliceResult, error) {
	round := fmt.Sprintf("%06d", r.Iteration)
	r.p.Phase, r.p.Child = PhaseRollout, RolloutID(r.Run, r.stage().Name, round)
	state := RolloutState{Slice: r.slice(activities.PurposeRollout, round), Prompts: r.stage().Prompts, Samples: r.stage().Samples}
	state.Slice.Ordinal = r.Ordinal
	var counts activities.SliceResult
	child := as(ctx, r.p.Child, "%d prompts, %d samples each, weights %s", state.Prompts, state.Samples, r.Weights.Version)
	err := workflow.ExecuteChildWorkflow(child, Rollout, state).Get(ctx, &counts)
	r.p.Child = ""
	return counts, err
}

func (r *reinforcement) slice(purpose, round string) activities.SliceInput {
	s := r.stage()
	return activities.SliceInput{
		Run: r.Run, Stage: s.Name, StageIndex: r.Index, Purpose: purpose, Round: round, Iteration: r.Iteration,
		Problems: r.Problems, Weights: r.Weights, Tokens: s.ResponseTokens, Turns: s.Turns, Temperature: r.Recipe.RL.Temperature,
	}
}

func (r *reinforcement) choose(ctx workflow.Context, earlier []activities.Round) (activities.SelectResult, error) {
	r.p.Phase = PhaseSelect
	in := activities.SelectInput{
		Run: r.Run, Stage: r.stage().Name, StageIndex: r.Index, Iteration: r.Iteration, Step: r.Step + 1,
		FirstOrdinal: r.Ordinal, Prompts: r.stage().Prompts, Weights: r.Weights, Earlier: earlier,
	}
	var out activities.SelectResult
	ctx = on(ctx, activities.QueueCPU, shortWork, "choose the batch of round %d", r.Iteration)
	err := workflow.ExecuteActivity(ctx, selector.SelectBatch, in).Get(ctx, &out)
	return out, err
}

// train applies one step. Its iteration is the round that was sampled last.
func (r *reinforcement) train(ctx workflow.Context, chosen activities.SelectResult, batch activities.Ref, update int) error {
	r.p.Phase = PhaseTrain
	in := activities.TrainInput{
		Run: r.Run, Stage: r.stage().Name, StageIndex: r.Index, Iteration: r.Iteration - 1, Update: update, Step: r.Step + 1, Batch: batch,
		Timings: chosen.Timings,
	}
	var out activities.TrainResult
	to := on(ctx, activities.QueueTrainer, longWork, "step %d: %d sequences, reward %.2f", in.Step, chosen.Sequences, chosen.Reward)
	if err := workflow.ExecuteActivity(to, trainer.TrainStep, in).Get(ctx, &out); err != nil {
		return err
	}
	r.Step, r.Weights, r.Last = in.Step, out.Weights, &out.Metrics
	return workflow.UpsertTypedSearchAttributes(ctx, attrStep.ValueSet(r.Step), attrReward.ValueSet(out.Metrics.Reward))
}

// aside starts what need not be waited for: a checkpoint, an evaluation of the policy just published.
func (r *reinforcement) aside(ctx workflow.Context) error {
	if r.Step%int64(r.Recipe.Checkpoint.Every) == 0 && r.Step < r.last() {
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	every := int64(r.Recipe.Eval.EverySteps)
	if every == 0 || r.Step%every != 0 || r.Step == r.last() {
		return nil
	}
	in := r.evaluation(fmt.Sprintf("%s-step-%06d", r.stage().Name, r.Step))
	child := as(ctx, EvaluateID(r.Run, in.Name), "evaluate %s", r.Weights.Version)
	opts := workflow.GetChildWorkflowOptions(child)
	opts.ParentClosePolicy = enums.PARENT_CLOSE_POLICY_ABANDON
	running := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, opts), Evaluate, in)
	r.evals = append(r.evals, running)
	return running.GetChildWorkflowExecution().Get(ctx, nil)
}

func (r *reinforcement) evaluation(name string) EvaluateInput {
	return EvaluateInput{
		Run: r.Run, Recipe: r.Recipe, Name: name, Stage: r.stage().Name, StageIndex: r.Index, Weights: r.Weights, Problems: r.HeldOut,
	}
}

// save waits for the checkpoint before, then starts the next.
func (r *reinforcement) save(ctx workflow.Context) error {
	if err := r.saved(ctx); err != nil {
		return err
	}
	in := activities.CheckpointInput{Run: r.Run, Stage: r.stage().Name, StageIndex: r.Index, Step: r.Step}
	r.saving = workflow.ExecuteActivity(on(ctx, activities.QueueTrainer, longWork, "checkpoint step %d", r.Step), trainer.Checkpoint, in)
	return nil
}

func (r *reinforcement) saved(ctx workflow.Context) error {
	if r.saving == nil {
		return nil
	}
	err := r.saving.Get(ctx, nil)
	r.saving = nil
	return err
}

// end waits for the evaluations beside training, and saves the stage's last state, which the next stage begins from.
func (r *reinforcement) end(ctx workflow.Context, ended string) (ReinforceResult, error) {
	if err := r.evaluated(ctx); err != nil {
		return ReinforceResult{}, err
	}
	if err := r.save(ctx); err != nil {
		return ReinforceResult{}, err
	}
	out := ReinforceResult{Problems: r.Problems, Weights: r.Weights, Step: r.Step, Tokens: r.Tokens, Ended: ended}
	if r.Last != nil {
		out.Reward = r.Last.Reward
	}
	return out, r.saved(ctx)
}

// evaluated waits for the evaluations beside training.
func (r *reinforcement) evaluated(ctx workflow.Context) error {
	for _, running := range r.evals {
		if err := running.Get(ctx, nil); err != nil {
			return err
		}
	}
	r.evals = nil
	return nil
}

// continueAsNew starts a fresh history at a step boundary, with nothing left under way.
func (r *reinforcement) continueAsNew(ctx workflow.Context) error {
	if err := r.evaluated(ctx); err != nil {
		return err
	}
	if err := r.saved(ctx); err != nil {
		return err
	}
	r.Control.drain(ctx)
	return workflow.NewContinueAsNewError(ctx, Reinforce, r.ReinforceState)
}

// filter drops the problems that the stage's first policy solves in every sample.
func (r *reinforcement) filter(ctx workflow.Context) error {
	f := r.stage().Filter
	tried := min(f.Problems, r.Problems.Problems)
	r.p.Phase, r.p.Child = PhaseFilter, RolloutID(r.Run, r.stage().Name, "filter")
	state := RolloutState{Slice: r.slice(activities.PurposeFilter, "filter"), Prompts: tried, Samples: f.Samples}
	child := as(ctx, r.p.Child, "try %d problems, %d samples each", tried, f.Samples)
	if err := workflow.ExecuteChildWorkflow(child, Rollout, state).Get(ctx, nil); err != nil {
		return err
	}
	r.p.Child = ""
	in := activities.FilterInput{Run: r.Run, Stage: r.stage().Name, StageIndex: r.Index, Problems: r.Problems, Tried: tried, Samples: f.Samples}
	ctx = on(ctx, activities.QueueCPU, shortWork, "drop the problems that are always solved")
	return workflow.ExecuteActivity(ctx, selector.FilterProblems, in).Get(ctx, &r.Problems)
}

func (r *reinforcement) show(ctx workflow.Context) {
	first := int64(r.Recipe.FirstStep(r.Index))
	r.p.Step, r.p.Tokens, r.p.Last = r.Step-first, r.Tokens, r.Last
	text := fmt.Sprintf("**%s** · step %d of %d · round %d · %d problems · weights `%s`\n", r.stage().Name, r.p.Step, r.p.Steps,
		r.Iteration, r.Problems.Problems, r.Weights.Version)
	if m := r.Last; m != nil {
		text += fmt.Sprintf("\n| reward | tool errors | entropy | grad norm | mixed groups | tokens/response |\n|---|---|---|---|---|---|\n| %.3f | %.1f%% | %.3f | %.3f | %d of %d | %.0f |\n",
			m.Reward, 100*m.ToolErrorShare, m.Entropy, m.GradNorm, m.Groups-m.AllCorrect-m.AllWrong, m.Groups, m.ResponseTokens)
	}
	workflow.SetCurrentDetails(ctx, text)
}
