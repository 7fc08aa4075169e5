package activities

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
	"github.com/restar-rl/restar/workers/train"
)

// PrepareModel makes the run's first policy durable: the model folder the user gave, or a freshly initialised model for the
// tokenizer that curation found or trained.
func (t *Trainer) PrepareModel(ctx context.Context, in FineTuneInput) (FineTuneResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return FineTuneResult{}, err
	}
	h := t.lock(in.Run)
	defer h.mu.Unlock()
	if done, err := t.begun(ctx, store.CheckpointsPrefix(in.Run, StageSFT)); err != nil || done {
		return t.prepared(ctx, rec, in, err)
	}
	m, folder, err := t.firstModel(ctx, rec, in)
	if err != nil {
		return FineTuneResult{}, err
	}
	progress.step()
	for _, name := range []string{model.ConfigFile, "tokenizer.json", "tokenizer_config.json", model.GenerationFile} {
		if body, ok := folder[name]; ok {
			if err := store.PutSame(ctx, t.Store, modelKey(in.Run, name), body); err != nil {
				return FineTuneResult{}, err
			}
		}
	}
	return t.begin(ctx, rec, in, m)
}

// begin publishes and checkpoints the first policy as step 0 of fine-tuning.
func (t *Trainer) begin(ctx context.Context, rec Recipe, in FineTuneInput, m *model.Model) (FineTuneResult, error) {
	s := train.NewState(m)
	w := Weights{Stage: StageSFT, Version: versionOf(StageSFT, 0), Digest: s.WeightsDigest()}
	if err := t.publish(ctx, in.Run, w, m); err != nil {
		return FineTuneResult{}, err
	}
	body, err := encodeState(ctx, s)
	if err != nil {
		return FineTuneResult{}, err
	}
	return FineTuneResult{Weights: w}, t.writeCheckpoint(ctx, rec, in.Run, StageSFT, 0, body)
}

// prepared answers for a model that an earlier attempt made durable. When later steps have replaced its checkpoint, the
// weights are not needed any more and only their name is given.
func (t *Trainer) prepared(ctx context.Context, rec Recipe, in FineTuneInput, err error) (FineTuneResult, error) {
	if err != nil {
		return FineTuneResult{}, err
	}
	out := FineTuneResult{Weights: Weights{Stage: StageSFT, Version: versionOf(StageSFT, 0)}}
	s, err := t.loadCheckpoint(ctx, rec, in.Run, StageSFT, 0)
	if isNotFound(err) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Weights.Digest = s.WeightsDigest()
	return out, t.publish(ctx, in.Run, out.Weights, s.Model)
}

// firstModel returns the policy that the recipe names and the files of its folder.
func (t *Trainer) firstModel(ctx context.Context, rec Recipe, in FineTuneInput) (*model.Model, map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "restar-model-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	if rec.Model.From != "" {
		err = t.fetchFolder(ctx, in.Run, dir)
	} else {
		err = t.createFolder(ctx, rec, in, dir)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := model.Load(dir, model.WithPrecision(precision(rec)))
	if err != nil {
		return nil, nil, InputError(err)
	}
	tok, err := tokenizer.Load(dir)
	if err != nil {
		return nil, nil, InputError(err)
	}
	if err := fits(rec, m, tok); err != nil {
		return nil, nil, InputError(err)
	}
	folder, err := files(dir)
	if err != nil {
		return nil, nil, err
	}
	_, err = m.Config.Ends(folder[model.GenerationFile]) // which rollouts will read
	return m, folder, InputError(err)
}

// fits checks that a model has a row for every token and a position for every allowed length, and a tokenizer every marker
// that ends a turn.
func fits(rec Recipe, m *model.Model, tok *tokenizer.Tokenizer) error {
	if tok.VocabSize() > m.Config.VocabSize {
		return fmt.Errorf("the tokenizer has %d ids, the model %d rows: they do not belong together", tok.VocabSize(), m.Config.VocabSize)
	}
	for _, marker := range []string{tokenizer.TurnStart, tokenizer.TurnEnd, tokenizer.EndOfText} {
		if _, ok := tok.SpecialID(marker); !ok {
			return fmt.Errorf("the tokenizer lacks %s: use a ChatML model such as Qwen3", marker)
		}
	}
	if longest := rec.LongestTrajectory(); longest > m.Config.MaxPosition {
		return fmt.Errorf("agent.max_prompt_tokens and response_tokens allow %d tokens, the model has %d positions", longest, m.Config.MaxPosition)
	}
	return nil
}

// fetchFolder brings the model folder that the user gave to the run.
func (t *Trainer) fetchFolder(ctx context.Context, run, dir string) error {
	names, err := readJSON[[]string](ctx, t.Store, InputKey(run, ModelFiles))
	if err != nil {
		return err
	}
	for _, name := range names {
		body, _, err := t.Store.Get(ctx, InputKey(run, modelInput(name)))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), body, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ModelFiles is the input that lists the files of the user's model folder; each is the input "model-" and its name.
const ModelFiles = "model-files.json"

// createFolder initialises a model from scratch for the run's tokenizer.
func (t *Trainer) createFolder(ctx context.Context, rec Recipe, in FineTuneInput, dir string) error {
	tok, err := t.Runs.Tokenizer(ctx, in.Run)
	if err != nil {
		return err
	}
	if err := tok.Save(dir); err != nil {
		return err
	}
	m, err := model.New(initConfig(rec.Model.Init, tok), rec.Seed)
	if err != nil {
		return InputError(err)
	}
	return m.Save(dir)
}

// initConfig is the Qwen3 configuration that a recipe asks for, sized to its tokenizer.
func initConfig(i *recipe.ModelInit, tok *tokenizer.Tokenizer) model.Config {
	end, _ := tok.SpecialID(tokenizer.TurnEnd)
	pad, _ := tok.SpecialID(tokenizer.EndOfText)
	return model.Config{
		VocabSize: i.Vocab, HiddenSize: i.Hidden, IntermediateSize: i.Intermediate, Layers: i.Layers, Heads: i.Heads,
		KVHeads: i.KVHeads, HeadDim: i.HeadDim, MaxPosition: i.MaxPosition, RopeTheta: i.RopeTheta, RMSNormEps: 1e-6, // Qwen3's
		TieWordEmbeddings: true, InitializerRange: 0.02, EOSTokenID: &end, PadTokenID: &pad,
	}
}
