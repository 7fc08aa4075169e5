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
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return Weights{}, err
	}
	h := t.lock(in.Run)
	defer h.mu.Unlock()
	first, err := t.firstState(ctx, rec, in, progress)
	if err != nil {
		return Weights{}, err
	}
	begun, err := t.begun(ctx, store.CheckpointsPrefix(in.Run, in.Stage))
	if err != nil {
		return Weights{}, err
	}
	w := Weights{Stage: in.Stage, Version: versionOf(in.Stage, in.Step), Digest: first.WeightsDigest()}
	if begun {
		return w, nil
	}
	body, err := encodeState(ctx, first)
	if err != nil {
		return w, err
	}
	if err := t.publish(ctx, in.Run, w, first.Model); err != nil {
		return w, err
	}
	return w, t.writeCheckpoint(ctx, rec, in.Run, in.Stage, in.Step, body)
}

// firstState makes the state that a stage begins with.
func (t *Trainer) firstState(ctx context.Context, rec Recipe, in BeginStageInput, progress *pulse) (*train.State, error) {
	s, err := t.remake(ctx, rec, in.Run, in.From, progress)
	if err != nil {
		return nil, err
	}
	if st := rec.Stages[in.StageIndex]; in.From.Stage == StageSFT || st.ResetOptimizer || st.Star != nil {
		s.ResetOptimizer() // moments of another loss say nothing about this one
	}
	s.AppliedStep = in.Step
	return s, nil
}

// remake returns the training state whose weights were published as w: from its checkpoint, or by a replay that must reach
// its digest.
func (t *Trainer) remake(ctx context.Context, rec Recipe, run string, w Weights, progress *pulse) (*train.State, error) {
	stage, step, err := parseVersion(w)
	if err != nil {
		return nil, err
	}
	aside := &holding{alone: true, snapshots: map[int64][]byte{}}
	if err := t.reach(ctx, rec, aside, TrainInput{Run: run, Stage: stage, Step: step + 1}, progress); err != nil {
		return nil, fmt.Errorf("weights %s: %w", w.Version, err)
	}
	if got := aside.state.WeightsDigest(); got != w.Digest {
		return nil, numericsError("weights "+w.Version+" as "+got, w.Digest)
	}
	return aside.state, nil
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
