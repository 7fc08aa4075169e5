package workflows

import (
	"errors"
	"fmt"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/recipe"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// pendingSlices keeps well below the server's limit of 2,000 pending activities a workflow.
	pendingSlices = 500
	// slicesPerRun bounds one history: a slice is three events, and a history is told to end at 4,096.
	slicesPerRun = 1000
)

// RolloutState is one round: Samples trajectories of each of Prompts prompts, by one fixed policy.
type RolloutState struct {
	Slice   activities.SliceInput `json:"slice"` // what all slices share; Ordinal is the first
	Prompts int                   `json:"prompts"`
	Samples int                   `json:"samples"` // of each prompt

	Next   int                    `json:"next"` // slices done before this run of the workflow
	Counts activities.SliceResult `json:"counts"`
}

// Rollout fans a round out over the rollout workers and returns its counts. Trajectories stay in the journal.
func Rollout(ctx workflow.Context, s RolloutState) (activities.SliceResult, error) {
	p := Progress{Run: s.Slice.Run, Phase: PhaseRollout, Stage: recipe.StageName(s.Slice.Stage), Total: s.slices(), Done: s.Next, Counts: s.Counts}
	if err := answer(ctx, &p); err != nil {
		return s.Counts, err
	}
	if err := label(ctx, s.Slice.Run, recipe.StageName(s.Slice.Stage)); err != nil {
		return s.Counts, err
	}
	last := min(s.Next+slicesPerRun, s.slices())
	if err := s.fanOut(ctx, s.Next, last, &p); err != nil {
		return s.Counts, err
	}
	if s.Next = last; s.Next < s.slices() {
		return s.Counts, workflow.NewContinueAsNewError(ctx, Rollout, s)
	}
	return s.Counts, nil
}

// fanOut runs slices [from,to), a window of them at a time, and adds up their counts.
func (s *RolloutState) fanOut(ctx workflow.Context, from, to int, p *Progress) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	window := workflow.NewSemaphore(ctx, pendingSlices)
	all := workflow.NewWaitGroup(ctx)
	var failed error
	for i := from; i < to && failed == nil; i++ {
		if err := window.Acquire(ctx, 1); err != nil {
			return err
		}
		in := s.slice(i)
		all.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer all.Done()
			defer window.Release(1)
			got, err := sampleSlice(ctx, in)
			if err != nil {
				if failed == nil { // the others only report that they were cancelled for it
					failed = err
				}
				cancel()
				return
			}
			s.Counts = s.Counts.Add(got)
			p.Done++
			p.Counts, p.Tokens = s.Counts, s.Counts.Tokens
			workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d of %d slices · %d trajectories · %d correct · %d tool calls, %d failed",
				p.Done, p.Total, s.Counts.Samples, s.Counts.Correct, s.Counts.Calls, s.Counts.CallErrors))
		})
	}
	all.Wait(ctx)
	return failed
}

// sampleSlice runs one slice. Weights that are not published any more are published again first, as often as training drops
// them before the slice has read them.
func sampleSlice(ctx workflow.Context, in activities.SliceInput) (got activities.SliceResult, err error) {
	to := on(ctx, activities.QueueRollout, longWork, "prompt %d, samples %d to %d", in.Ordinal, in.FirstSample, in.FirstSample+in.Samples-1)
	for {
		err = workflow.ExecuteActivity(to, rollouts.Slice, in).Get(ctx, &got)
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.Type() != activities.ErrMissingWeights {
			return got, err
		}
		again := activities.BeginStageInput{Run: in.Run, Stage: in.Weights.Stage, StageIndex: in.StageIndex, From: in.Weights}
		publish := on(ctx, activities.QueueTrainer, longWork, "publish %s again", in.Weights.Version)
		if err := workflow.ExecuteActivity(publish, trainer.PublishWeights, again).Get(ctx, nil); err != nil {
			return got, err
		}
	}
}

func (s *RolloutState) perPrompt() int {
	return (s.Samples + activities.SliceSamples - 1) / activities.SliceSamples
}

func (s *RolloutState) slices() int { return s.Prompts * s.perPrompt() }

// slice is the i-th slice of the round, prompts in ordinal order.
func (s *RolloutState) slice(i int) activities.SliceInput {
	in := s.Slice
	in.Ordinal += i / s.perPrompt()
	in.Slice = i % s.perPrompt()
	in.FirstSample = in.Slice * activities.SliceSamples
	in.Samples = min(activities.SliceSamples, s.Samples-in.FirstSample)
	return in
}
