package activities

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

// BeginStage gives a stage its first training state: the last one of the stage before, with fresh optimizer moments if the
// recipe says so. It is checkpointed before anything uses it, so a stage can always be replayed from its own store.
func (t *Trainer) BeginStage(ctx context.Context, in BeginStageInput) (Weights, error) {
	ctx, _, stop := beat(ctx)
	defer stop()
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return Weights{}, err
	}
	h := t.lock(in.Run)
	defer h.mu.Unlock()
	prefix := store.CheckpointsPrefix(in.Run, in.Stage)
	first, begun, err := t.firstState(ctx, rec, in, prefix)
	if err != nil {
		return Weights{}, err
	}
	w := Weights{Stage: in.Stage, Version: versionOf(in.Stage, in.Step), Digest: first.WeightsDigest()}
	if begun {
		return w, nil
	}
	body, err := encodeState(first)
	if err != nil {
		return w, err
	}
	if err := t.publish(ctx, in.Run, w, first.Model); err != nil {
		return w, err
	}
	return w, t.writeCheckpoint(ctx, rec, prefix, in.Step, body)
}

// firstState loads the state that a stage began with, or makes it. begun says that it was durable before.
func (t *Trainer) firstState(ctx context.Context, rec Recipe, in BeginStageInput, prefix string) (*train.State, bool, error) {
	stage, step, err := parseVersion(in.From)
	if err != nil {
		return nil, false, err
	}
	s, err := t.loadCheckpoint(ctx, rec, in.Run, stage, step)
	if err != nil {
		return nil, false, err
	}
	if got := s.WeightsDigest(); got != in.From.Digest {
		return nil, false, numericsError("weights "+in.From.Version+" as "+got, in.From.Digest)
	}
	if stage == StageSFT || rec.Stages[in.StageIndex].ResetOptimizer {
		s.ResetOptimizer() // moments of another loss say nothing about this one
	}
	s.AppliedStep = in.Step
	begun, err := t.begun(ctx, prefix)
	return s, begun, err
}

// begun reports whether a stage has any checkpoint: its first state was durable.
func (t *Trainer) begun(ctx context.Context, prefix string) (bool, error) {
	all, err := store.Checkpoints(ctx, t.Store, prefix)
	return len(all) > 0, err
}

// parseVersion splits the name of published weights into stage and step.
func parseVersion(w Weights) (stage string, step int64, err error) {
	digits, ok := strings.CutPrefix(w.Version, w.Stage+"-")
	if ok {
		step, err = strconv.ParseInt(digits, 10, 64)
	}
	if !ok || err != nil {
		return "", 0, fmt.Errorf("weights version is %q, want %q and a number", w.Version, w.Stage+"-")
	}
	return w.Stage, step, nil
}
