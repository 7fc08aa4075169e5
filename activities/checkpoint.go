package activities

import (
	"context"
	"fmt"
	"strconv"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

// metaRecipe is the manifest's record of the digest of the resolved recipe that the state was trained by.
const metaRecipe = "recipe_digest"

// stateBlob is the one file of a checkpoint: weights, moments and step, named, without topology.
const stateBlob = "state.safetensors"

// Checkpoint makes the state after in.Step durable. The step's trainer kept a copy, so training goes on meanwhile; without
// the copy the state is made again from the checkpoint before.
func (t *Trainer) Checkpoint(ctx context.Context, in CheckpointInput) error {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return err
	}
	done, err := t.checkpointed(ctx, store.CheckpointsPrefix(in.Run, in.Stage), in.Step)
	if err != nil {
		return err
	}
	if done { // but its writer may have died before it dropped the old ones
		return t.prune(ctx, rec, in.Run, in.Stage)
	}
	body, err := t.takeSnapshot(ctx, rec, in, progress)
	if err != nil {
		return err
	}
	if err := t.writeCheckpoint(ctx, rec, in.Run, in.Stage, in.Step, body); err != nil {
		return err
	}
	t.Faults.Point("before-complete", fmt.Sprintf("checkpoint %s", versionOf(in.Stage, in.Step)))
	return nil
}

// checkpointed reports whether a state of step or a later one is durable: a run that is started again asks for checkpoints
// that were pruned since.
func (t *Trainer) checkpointed(ctx context.Context, prefix string, step int64) (bool, error) {
	newest, ok, err := store.Latest(ctx, t.Store, prefix)
	return ok && newest.Step >= step, err
}

// takeSnapshot returns the encoded state after in.Step.
func (t *Trainer) takeSnapshot(ctx context.Context, rec Recipe, in CheckpointInput, progress *pulse) ([]byte, error) {
	h := t.lock(in.Run)
	defer h.mu.Unlock()
	if body, ok := h.snapshots[in.Step]; ok {
		delete(h.snapshots, in.Step)
		return body, nil
	}
	next := TrainInput{Run: in.Run, Stage: in.Stage, StageIndex: in.StageIndex, Step: in.Step + 1}
	if err := t.reach(ctx, rec, h, next, progress); err != nil {
		return nil, fmt.Errorf("state after step %d: %w", in.Step, err)
	}
	return encodeState(ctx, h.state)
}

func (t *Trainer) writeCheckpoint(ctx context.Context, rec Recipe, run, stage string, step int64, body []byte) error {
	recipe, err := t.Runs.RecipeDigest(ctx, run)
	if err != nil {
		return err
	}
	meta := map[string]string{"numerics_id": rec.NumericsID, "recipe": rec.Name, metaRecipe: recipe}
	blobs := []store.Blob{{Name: stateBlob, Data: body}}
	if _, _, err := store.WriteCheckpoint(ctx, t.Store, store.CheckpointsPrefix(run, stage), step, blobs, meta); err != nil {
		return err
	}
	return t.prune(ctx, rec, run, stage)
}

// prune drops the checkpoints and published weights of a stage that are no longer kept, among them weights that were
// published again for a straggler.
func (t *Trainer) prune(ctx context.Context, rec Recipe, run, stage string) error {
	if _, err := store.PruneCheckpoints(ctx, t.Store, store.CheckpointsPrefix(run, stage), rec.Checkpoint.Keep); err != nil {
		return err
	}
	_, err := store.PruneWeights(ctx, t.Store, run, stage, referencesOf(rec, stage))
	return err
}

// loadCheckpoint reads the state of one checkpoint, strictly.
func (t *Trainer) loadCheckpoint(ctx context.Context, rec Recipe, run, stage string, step int64) (*train.State, error) {
	c, blobs, err := store.ReadCheckpoint(ctx, t.Store, store.CheckpointsPrefix(run, stage), step)
	if err != nil {
		return nil, err
	}
	if got := c.Meta["numerics_id"]; got != rec.NumericsID {
		return nil, numericsError(rec.NumericsID, got)
	}
	want, err := t.Runs.RecipeDigest(ctx, run)
	if err != nil {
		return nil, err
	}
	if got, recorded := c.Meta[metaRecipe]; recorded && got != want { // manifests of earlier versions have none
		return nil, InputError(fmt.Errorf("checkpoint %d of %s/%s was trained by the recipe of digest %s, the run's has %s: give back the run's own recipe, or begin a new run", step, run, stage, got, want))
	}
	if len(blobs) != 1 || blobs[0].Name != stateBlob {
		return nil, fmt.Errorf("checkpoint %d of %s/%s: %w: want one object %s", step, run, stage, store.ErrCorrupt, stateBlob)
	}
	tensors, meta, err := model.DecodeSafetensors(blobs[0].Data)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d of %s/%s: %w: %w", step, run, stage, store.ErrCorrupt, err)
	}
	m, err := t.skeleton(ctx, run)
	if err != nil {
		return nil, err
	}
	state := train.NewState(m)
	state.Plan.Recompute = rec.Recompute
	if err := state.LoadTensors(tensors); err != nil {
		return nil, fmt.Errorf("checkpoint %d of %s/%s: %w", step, run, stage, err)
	}
	state.AppliedStep, err = strconv.ParseInt(meta["applied_step"], 10, 64)
	return state, err
}
