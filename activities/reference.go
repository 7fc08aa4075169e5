package activities

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

// referenceTokens bounds one pass of the reference model, which keeps no activations.
const referenceTokens = 4096

// reference is a frozen policy of the stage.
type reference struct {
	version string
	model   *model.Model
}

// referenceStep is the applied step whose policy is the reference of a step: the stage's first, or the last one of a refresh
// (DeepSeekMath Alg 1, line 3: iterative GRPO).
func referenceStep(alg rl.Algorithm, first, step int64) int64 {
	if alg.KLRefresh == 0 {
		return first
	}
	every := int64(alg.KLRefresh)
	return first + (step-1-first)/every*every
}

// addReference gives every sequence the log-probs of the stage's reference model. They are a function of published weights and the
// batch, so a replay makes the same.
func (t *Trainer) addReference(ctx context.Context, alg rl.Algorithm, h *holding, in TrainInput, b *train.Batch) error {
	if alg.KLBeta == 0 || len(b.Sequences) == 0 {
		return nil
	}
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return err
	}
	step := referenceStep(alg, int64(rec.FirstStep(stageIndex(rec, in.Stage))), in.Step)
	if version := versionOf(in.Stage, step); h.reference == nil || h.reference.version != version {
		m, err := t.published(ctx, in.Run, in.Stage, version)
		if err != nil {
			return fmt.Errorf("reference model of step %d: %w", in.Step, err)
		}
		h.reference = &reference{version: version, model: m}
	}
	return h.reference.score(ctx, b)
}

// score computes the log-probs of sampled tokens, some sequences at a time.
func (r *reference) score(ctx context.Context, b *train.Batch) error {
	ws := model.NewWorkspace()
	for from := 0; from < len(b.Sequences); {
		to, tokens := from, 0
		var ids [][]int32
		for to < len(b.Sequences) && (to == from || tokens+len(b.Sequences[to].IDs) <= referenceTokens) {
			ids = append(ids, b.Sequences[to].IDs)
			tokens += len(b.Sequences[to].IDs)
			to++
		}
		logp, _, err := r.model.LogProbs(ctx, ws, model.Pack(ids...))
		if err != nil {
			return fmt.Errorf("reference model %s: %w", r.version, err)
		}
		for i := from; i < to; i++ {
			s := &b.Sequences[i]
			s.RefLogProbs = logp[:len(s.IDs):len(s.IDs)]
			logp = logp[len(s.IDs):]
			for t, m := range s.Mask {
				if m == 0 {
					s.RefLogProbs[t] = 0
				}
			}
		}
		from = to
	}
	return nil
}

// published loads a version of a stage's weights, checked against the digest that it was published with.
func (t *Trainer) published(ctx context.Context, run, stage, version string) (*model.Model, error) {
	m, err := store.WeightsManifest(ctx, t.Store, run, stage, version)
	if err != nil {
		return nil, err
	}
	p := &Policies{Runs: t.Runs, Store: t.Store}
	return p.Load(ctx, run, Weights{Stage: stage, Version: version, Digest: m.Meta["digest"]})
}

// referencesOf tells which published versions of a stage its steps may still be held to: the reference of the newest version and the one
// before, which a replay from the oldest checkpoint may need. It is nil where nothing is.
func referencesOf(rec Recipe, stage string) func(version, newest string) bool {
	alg, err := rec.RL.Parameters()
	i := stageIndex(rec, stage)
	if err != nil || alg.KLBeta == 0 || i < 0 {
		return nil
	}
	first := int64(rec.FirstStep(i))
	return func(version, newest string) bool {
		_, step, err := parseVersion(Weights{Stage: stage, Version: newest})
		if err != nil {
			return true
		}
		now := referenceStep(alg, first, step+1)
		before := referenceStep(alg, first, max(first+1, now))
		return version == versionOf(stage, now) || version == versionOf(stage, before)
	}
}

// stageIndex finds the stage of the recipe that a name in the store belongs to, -1 for others.
func stageIndex(rec Recipe, name string) int {
	for i, s := range rec.Stages {
		if s.Name == recipe.StageName(name) {
			return i
		}
	}
	return -1
}
