package activities

import (
	"context"

	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// tokenizer makes the run's tokenizer durable: the one of the folder that the user gave, or a BPE trained on the run's own
// text.
func (c *Curation) tokenizer(ctx context.Context, rec Recipe, run string, raw rawSets) (*tokenizer.Tokenizer, error) {
	folder, err := c.tokenizerFiles(ctx, rec, run, raw)
	if err != nil {
		return nil, err
	}
	for _, name := range tokenizerNames {
		if body, ok := folder[name]; ok {
			if err := store.PutSame(ctx, c.Store, modelKey(run, name), body); err != nil {
				return nil, err
			}
		}
	}
	tok, err := tokenizer.FromFiles(folder)
	return tok, InputError(err)
}

// tokenizerNames are the files of a tokenizer in a Hugging Face folder.
var tokenizerNames = []string{"tokenizer.json", "tokenizer_config.json"}

func (c *Curation) tokenizerFiles(ctx context.Context, rec Recipe, run string, raw rawSets) (map[string][]byte, error) {
	if rec.Model.From == "" && rec.Model.Init.Tokenizer == "" {
		tok, err := tokenizer.Train(raw.texts(rec), rec.Model.Init.Vocab, tokenizer.Markers())
		if err != nil {
			return nil, InputError(err)
		}
		return tok.Files()
	}
	folder := map[string][]byte{}
	for _, name := range tokenizerNames {
		body, _, err := c.Store.Get(ctx, InputKey(run, modelInput(name)))
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		folder[name] = body
	}
	return folder, nil
}

// modelInput names a file of the user's model or tokenizer folder among the run's inputs.
func modelInput(name string) string { return "model-" + name }

// texts are what a tokenizer learns from: the demonstrations as whole conversations, prompt included, as the model will read
// them, and the problems.
func (r rawSets) texts(rec Recipe) []string {
	tpl := Template(rec)
	texts := []string{tpl.Prompt("")}
	for _, d := range r.demos {
		texts = append(texts, tpl.Text(d.Problem, conversationTurns(d)))
	}
	for _, p := range r.problems {
		texts = append(texts, p.Problem)
	}
	return texts
}

// conversationTurns is a demonstration in the tokenizer's terms.
func conversationTurns(d problem.Demo) []tokenizer.Turn {
	turns := make([]tokenizer.Turn, len(d.Turns))
	for i, t := range d.Turns {
		turns[i] = tokenizer.Turn{Role: t.Role, Text: t.Text}
	}
	return turns
}
