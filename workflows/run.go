package workflows

import (
	"fmt"

	"github.com/restar-rl/restar/activities"
	"go.temporal.io/sdk/workflow"
)

// TrainingRun is a whole run: curation, fine-tuning, an evaluation, then each stage with an evaluation after it.
// A recipe without stages is an evaluation of the model it names.
func TrainingRun(ctx workflow.Context, in RunInput) (RunResult, error) {
	t := &trainingRun{RunInput: in}
	t.p = Progress{Run: in.Run, Phase: PhaseCurate}
	if err := t.listen(ctx); err != nil {
		return RunResult{}, err
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, attrRun.ValueSet(in.Run), attrRecipe.ValueSet(in.Recipe.Name)); err != nil {
		return RunResult{}, err
	}
	err := t.work(ctx)
	if err != nil {
		t.p.Problem = err.Error()
		return RunResult{}, err
	}
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return RunResult{}, err
	}
	return t.out, nil
}

// trainingRun is a run at work.
type trainingRun struct {
	RunInput
	control Control
	data    activities.CurateResult
	weights activities.Weights
	heeds   string // the running child that listens to control
	out     RunResult
	p       Progress
}

func (t *trainingRun) work(ctx workflow.Context) error {
	if err := t.curate(ctx); err != nil {
		return err
	}
	if err := t.fineTune(ctx); err != nil {
		return err
	}
	if err := t.evaluate(ctx, activities.FirstEval(t.Recipe), activities.StageSFT, 0); err != nil {
		return err
	}
	for i := range t.Recipe.Stages {
		if t.control.Stopped {
			break
		}
		if err := t.reinforce(ctx, i); err != nil {
			return err
		}
		if err := t.evaluate(ctx, t.Recipe.Stages[i].Name, t.Recipe.Stages[i].Name, i); err != nil {
			return err
		}
	}
	return t.finish(ctx)
}

func (t *trainingRun) curate(ctx workflow.Context) error {
	t.show(ctx, PhaseCurate, "", CurateID(t.Run))
	child := as(ctx, t.p.Child, "curate the problems of %s", t.Run)
	err := workflow.ExecuteChildWorkflow(child, Curate, activities.CurateInput{Run: t.Run}).Get(ctx, &t.data)
	t.p.Curated = &t.data
	return err
}

func (t *trainingRun) fineTune(ctx workflow.Context) error {
	if _, err := t.control.gate(ctx); err != nil {
		return err
	}
	t.show(ctx, PhaseFineTune, activities.StageSFT, FineTuneID(t.Run))
	state := FineTuneState{Run: t.Run, Recipe: t.Recipe, Demos: t.data.Demos, Control: t.control}
	var got activities.FineTuneResult
	child := as(ctx, t.p.Child, "fine-tune on %d demonstrations", t.data.Demos.Problems)
	err := t.attend(ctx, workflow.ExecuteChildWorkflow(child, FineTune, state), state.Control, &got)
	t.weights = got.Weights
	return err
}

func (t *trainingRun) reinforce(ctx workflow.Context, i int) error {
	s := t.Recipe.Stages[i]
	t.show(ctx, PhaseRollout, s.Name, ReinforceID(t.Run, s.Name))
	if err := label(ctx, t.Run, s.Name); err != nil {
		return err
	}
	given := t.control
	var got ReinforceResult
	if err := t.attend(ctx, t.begin(ctx, i), given, &got); err != nil {
		return err
	}
	t.weights = got.Weights
	t.p.Tokens += got.Tokens
	if err := workflow.UpsertTypedSearchAttributes(ctx, attrStep.ValueSet(got.Step), attrReward.ValueSet(got.Reward)); err != nil {
		return err
	}
	switch got.Ended {
	case "saturated":
		t.p.Problem = fmt.Sprintf("%s ended at step %d: %d rounds in a row had no group with both right and wrong answers", s.Name, got.Step, emptyRounds)
	case nothingKept:
		t.p.Problem = fmt.Sprintf("%s ended at step %d: its policy solved no problem, so there was nothing to fine-tune on", s.Name, got.Step)
	}
	return nil
}

// begin starts the workflow of a stage.
func (t *trainingRun) begin(ctx workflow.Context, i int) workflow.ChildWorkflowFuture {
	s := t.Recipe.Stages[i]
	if s.Star != nil {
		state := STaRState{Run: t.Run, Recipe: t.Recipe, Index: i, Problems: t.data.Train, HeldOut: t.data.HeldOut, Base: t.weights, Control: t.control}
		child := as(ctx, t.p.Child, "up to %d iterations of STaR: %d samples of a prompt", s.Star.Iterations, s.Samples)
		return workflow.ExecuteChildWorkflow(child, STaR, state)
	}
	state := ReinforceState{
		Run: t.Run, Recipe: t.Recipe, Index: i, Problems: t.data.Train, HeldOut: t.data.HeldOut, Weights: t.weights, Control: t.control,
	}
	child := as(ctx, t.p.Child, "%d steps of %s: %d prompts, %d to %d samples", s.Steps, t.Recipe.RL.Algorithm, s.Prompts, s.Samples, s.Keep)
	return workflow.ExecuteChildWorkflow(child, Reinforce, state)
}

// attend waits for a child that heeds control. A wish that came while the child was being started, and so reached neither
// its input nor its signals, is told to it.
func (t *trainingRun) attend(ctx workflow.Context, child workflow.ChildWorkflowFuture, given Control, result any) error {
	var started workflow.Execution
	if err := child.GetChildWorkflowExecution().Get(ctx, &started); err != nil {
		return err
	}
	t.heeds = started.ID
	defer func() { t.heeds = "" }()
	if t.control != given {
		if err := t.control.tell(ctx, t.heeds); err != nil {
			return err
		}
	}
	return child.Get(ctx, result)
}

func (t *trainingRun) evaluate(ctx workflow.Context, name, stage string, index int) error {
	if t.control.Stopped {
		return nil
	}
	t.show(ctx, PhaseEvaluate, stage, EvaluateID(t.Run, name))
	in := EvaluateInput{
		Run: t.Run, Recipe: t.Recipe, Name: name, Stage: stage, StageIndex: index, Weights: t.weights, Problems: t.data.HeldOut,
	}
	var got activities.EvalResult
	child := as(ctx, t.p.Child, "evaluate %s on held-out problems", t.weights.Version)
	if err := workflow.ExecuteChildWorkflow(child, Evaluate, in).Get(ctx, &got); err != nil {
		return err
	}
	t.p.Evals = append(t.p.Evals, got)
	return nil
}

// finish exports the last policy and writes the report.
func (t *trainingRun) finish(ctx workflow.Context) error {
	t.show(ctx, PhaseReport, "", "")
	export := activities.ExportInput{Run: t.Run, Weights: t.weights}
	to := on(ctx, activities.QueueTrainer, shortWork, "export %s as a Hugging Face folder", t.weights.Version)
	if err := workflow.ExecuteActivity(to, trainer.ExportModel, export).Get(ctx, nil); err != nil {
		return err
	}
	var got activities.ReportResult
	to = on(ctx, activities.QueueCPU, shortWork, "write the report")
	in := activities.ReportInput{Run: t.Run, Stopped: t.control.Stopped}
	if err := workflow.ExecuteActivity(to, scoring.WriteReport, in).Get(ctx, &got); err != nil {
		return err
	}
	t.out = RunResult{Weights: t.weights, Evals: t.p.Evals, Report: got.Report, Stopped: t.control.Stopped}
	t.p.Report = got.Report.Key
	phase := PhaseDone
	if t.control.Stopped {
		phase = PhaseStopped
	}
	t.show(ctx, phase, "", "")
	return nil
}

func (t *trainingRun) show(ctx workflow.Context, phase, stage, child string) {
	t.p.Phase, t.p.Stage, t.p.Child = phase, stage, child
	t.describe(ctx)
}

// describe writes where the run is for people who look at it in the UI.
func (t *trainingRun) describe(ctx workflow.Context) {
	phase, stage, child := t.p.Phase, t.p.Stage, t.p.Child
	t.p.Paused, t.p.Stopping = t.control.Paused, t.control.Stopped
	text := fmt.Sprintf("**%s** · %s", t.Run, phase)
	if stage != "" {
		text += " · " + stage
	}
	if t.control.Paused {
		text += " · **paused**"
	}
	if child != "" {
		text += fmt.Sprintf("\n\nat work: `%s`", child)
	}
	if len(t.p.Evals) > 0 {
		text += "\n\n" + evalTable(t.p.Evals)
	}
	workflow.SetCurrentDetails(ctx, text)
}
