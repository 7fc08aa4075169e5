package activities

import (
	"context"
	"strings"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/store"
)

// exportStage is where the exported model folder of a run lies in the store.
const exportStage = "model"

// AgentFile holds, beside an exported model, the tool protocol that it was trained with: the recipe's agent section. A model
// measured under another protocol is another model.
const AgentFile = "restar_agent.json"

// ExportModel makes a policy readable as a Hugging Face folder: its weights beside the run's configuration and tokenizer.
func (t *Trainer) ExportModel(ctx context.Context, in ExportInput) (ExportResult, error) {
	ctx, _, stop := beat(ctx)
	defer stop()
	p := &Policies{Runs: t.Runs, Store: t.Store}
	m, err := p.Load(ctx, in.Run, in.Weights)
	if err != nil {
		return ExportResult{}, missing(err)
	}
	body, err := model.EncodeSafetensors(m.Tensors(), map[string]string{"format": "pt"})
	if err != nil {
		return ExportResult{}, err
	}
	if _, err := t.Store.Put(ctx, modelKey(in.Run, model.WeightsFile), body, store.PutOptions{}); err != nil {
		return ExportResult{}, err
	}
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return ExportResult{}, err
	}
	if body, err = encodeIndented(rec.Agent); err != nil {
		return ExportResult{}, err
	}
	if err := store.PutSame(ctx, t.Store, modelKey(in.Run, AgentFile), body); err != nil {
		return ExportResult{}, err
	}
	return exported(ctx, t.Store, in.Run)
}

// ModelPrefix begins the files of a run's exported model folder, each under its own name.
func ModelPrefix(run string) string { return store.ArtifactsPrefix(run, exportStage) }

// exported lists the files of a run's model folder.
func exported(ctx context.Context, s store.Store, run string) (ExportResult, error) {
	out := ExportResult{Prefix: ModelPrefix(run)}
	entries, err := s.List(ctx, out.Prefix)
	for _, e := range entries {
		out.Files = append(out.Files, strings.TrimPrefix(e.Key, out.Prefix))
	}
	return out, err
}

// PublishWeights publishes a version again that was dropped: from its checkpoint, or by a replay that must reach its digest.
func (t *Trainer) PublishWeights(ctx context.Context, in BeginStageInput) error {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return err
	}
	h := t.lock(in.Run)
	defer h.mu.Unlock()
	h.drop() // the lease is about to belong to another state
	s, err := t.remake(ctx, rec, in.Run, in.From, progress)
	if err != nil {
		return err
	}
	return t.put(ctx, in.Run, in.From, s.Model) // and not dropped at once for being old: the stage's next step does that
}
