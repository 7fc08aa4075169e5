package workflows

import (
	"fmt"

	"github.com/restar-rl/restar/activities"
	"go.temporal.io/sdk/workflow"
)

// FineTuneState is all that a fine-tuning workflow knows; continue-as-new hands it on unchanged.
type FineTuneState struct {
	Run     string             `json:"run"`
	Recipe  activities.Recipe  `json:"recipe"`
	Demos   activities.Dataset `json:"demonstrations"`
	Control Control            `json:"control"`

	Prepared bool                      `json:"prepared"`
	Done     int                       `json:"done"` // steps
	Tokens   int64                     `json:"tokens"`
	Last     activities.FineTuneResult `json:"last"`
}

// FineTune makes the run's first policy: the given or freshly initialised model, then SFT steps from save to save.
func FineTune(ctx workflow.Context, s FineTuneState) (activities.FineTuneResult, error) {
	p := Progress{Run: s.Run, Phase: PhaseFineTune, Stage: activities.StageSFT}
	if err := answer(ctx, &p); err != nil {
		return s.Last, err
	}
	if err := label(ctx, s.Run, activities.StageSFT); err != nil {
		return s.Last, err
	}
	s.Control.listen(ctx, func(workflow.Context) { p.Paused, p.Stopping = s.Control.Paused, s.Control.Stopped })
	if !s.Prepared {
		if err := s.prepare(ctx); err != nil {
			return s.Last, err
		}
	}
	for s.Done < s.Recipe.SFT.Steps {
		s.show(ctx, &p)
		stop, err := s.Control.gate(ctx)
		if err != nil || stop {
			return s.Last, err
		}
		if err := s.advance(ctx); err != nil {
			return s.Last, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			s.Control.drain(ctx)
			return s.Last, workflow.NewContinueAsNewError(ctx, FineTune, s)
		}
	}
	s.show(ctx, &p)
	return s.Last, nil
}

// prepare publishes the policy and tokenizer that fine-tuning starts from.
func (s *FineTuneState) prepare(ctx workflow.Context) error {
	ctx = on(ctx, activities.QueueTrainer, shortWork, "prepare the model and tokenizer")
	in := activities.FineTuneInput{Run: s.Run, Demos: s.Demos}
	err := workflow.ExecuteActivity(ctx, trainer.PrepareModel, in).Get(ctx, &s.Last)
	s.Prepared = err == nil
	return err
}

// advance applies the steps up to the next save.
func (s *FineTuneState) advance(ctx workflow.Context) error {
	to := min(s.Done+s.Recipe.SFT.SaveEvery, s.Recipe.SFT.Steps)
	ctx = on(ctx, activities.QueueTrainer, longWork, "SFT steps %d to %d", s.Done+1, to)
	in := activities.FineTuneInput{Run: s.Run, Demos: s.Demos, From: s.Done, To: to}
	err := workflow.ExecuteActivity(ctx, trainer.FineTuneSteps, in).Get(ctx, &s.Last)
	if err == nil {
		s.Done = to
		s.Tokens += s.Last.Tokens
	}
	return err
}

func (s *FineTuneState) show(ctx workflow.Context, p *Progress) {
	p.Step, p.Steps, p.Loss, p.Tokens = int64(s.Done), int64(s.Recipe.SFT.Steps), s.Last.Loss, s.Tokens
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("step **%d** of %d · loss %.4f nats/token · %d tokens", s.Done, s.Recipe.SFT.Steps, s.Last.Loss, s.Tokens))
}
