package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

// reach makes h hold the state right before in.Step: as it is, or by the newest checkpoint and a replay of the batches
// since.
func (t *Trainer) reach(ctx context.Context, rec Recipe, h *holding, in TrainInput, progress *pulse) error {
	if h.state != nil && h.stage == in.Stage && h.state.AppliedStep == in.Step-1 {
		err := t.fence(ctx, in.Run, in.Stage, h.epoch)
		if !errors.Is(err, errStaleEpoch) {
			return err
		}
	}
	epoch, err := t.lease(ctx, in.Run, in.Stage)
	if err != nil {
		return err
	}
	state, err := t.load(ctx, rec, in.Run, in.Stage, in.Step-1)
	if err != nil {
		return err
	}
	if err := t.take(ctx, h, state, fmt.Sprintf("%s/%s epoch %d", in.Run, in.Stage, epoch)); err != nil {
		return err
	}
	h.stage, h.epoch = in.Stage, epoch
	return t.replay(ctx, rec, h, in, progress)
}

// replay applies the recorded batches from the held state up to the one before in.Step.
func (t *Trainer) replay(ctx context.Context, rec Recipe, h *holding, in TrainInput, progress *pulse) error {
	if h.state.AppliedStep == in.Step-1 {
		return nil
	}
	batches, err := t.batches(ctx, in.Run, in.Stage)
	if err != nil {
		return err
	}
	for h.state.AppliedStep < in.Step-1 {
		next, ok := batches[h.state.AppliedStep+1]
		if !ok {
			return fmt.Errorf("step %d of %s/%s has no recorded batch, and no checkpoint after it", h.state.AppliedStep+1, in.Run, in.Stage)
		}
		next.StageIndex = in.StageIndex
		if _, err := t.apply(ctx, rec, h, next, true); err != nil {
			h.drop()
			return fmt.Errorf("replay: %w", err)
		}
		progress.step()
	}
	return nil
}

// load returns the newest checkpointed state of a stage that has applied at most step steps.
func (t *Trainer) load(ctx context.Context, rec Recipe, run, stage string, step int64) (*train.State, error) {
	prefix := store.CheckpointsPrefix(run, stage)
	all, err := store.Checkpoints(ctx, t.Store, prefix)
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Step > step {
			continue
		}
		state, err := t.loadCheckpoint(ctx, rec, run, stage, all[i].Step)
		if errors.Is(err, store.ErrCorrupt) && i > 0 {
			continue // an older one and a longer replay give the same state
		}
		return state, err
	}
	return nil, fmt.Errorf("%s/%s has no readable checkpoint of a step up to %d", run, stage, step)
}

// batches finds a stage's recorded batches by the step each is.
func (t *Trainer) batches(ctx context.Context, run, stage string) (map[int64]TrainInput, error) {
	entries, err := t.Store.List(ctx, store.BatchesPrefix(run, stage))
	if err != nil {
		return nil, err
	}
	out := map[int64]TrainInput{}
	for _, e := range entries {
		body, _, err := t.Store.Get(ctx, e.Key)
		if err != nil {
			return nil, err
		}
		b, err := decodeBatch(body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
		for i := range b.steps() {
			step := b.Step + int64(i)
			out[step] = TrainInput{Run: run, Stage: stage, Iteration: b.Iteration, Update: b.Update + i, Step: step, Batch: Ref{Key: e.Key, Digest: digest(body)}}
		}
	}
	return out, nil
}
