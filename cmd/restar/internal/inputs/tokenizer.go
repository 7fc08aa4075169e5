package inputs

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// checkTokenizer loads the folder, as a worker will, and wants room in the new model for every id.
func checkTokenizer(r recipe.Recipe) error {
	const fix = "give a folder with the tokenizer.json of a ChatML model such as Qwen3"
	i := *r.Model.Init
	t, err := tokenizer.Load(i.Tokenizer)
	if err != nil {
		return fmt.Errorf("model.init.tokenizer: %w; %s", err, fix)
	}
	if err := checkMarkers(t); err != nil {
		return fmt.Errorf("model.init.tokenizer: %s: %w; %s", i.Tokenizer, err, fix)
	}
	if t.VocabSize() > i.Vocab {
		return fmt.Errorf("model.init.vocab_size: %d, want at least %d: the tokenizer of %s has so many ids", i.Vocab, t.VocabSize(), i.Tokenizer)
	}
	return checkPrompts(r, t)
}

// addTokenizer puts the files of a tokenizer's folder where activities look for those of a model's.
func (p *Plan) addTokenizer(i recipe.ModelInit) error {
	var list bytes.Buffer
	for _, f := range []struct {
		name   string
		needed bool
	}{{"tokenizer.json", true}, {"tokenizer_config.json", false}} {
		body, err := os.ReadFile(filepath.Join(i.Tokenizer, f.name))
		if errors.Is(err, fs.ErrNotExist) && !f.needed {
			continue
		}
		if err != nil {
			return err
		}
		p.files = append(p.files, input{"model-" + f.name, body})
		fmt.Fprintf(&list, "%s %x\n", f.name, sha256.Sum256(body))
	}
	i.Tokenizer = named(list.Bytes(), i.Tokenizer)
	p.Recipe.Model.Init = &i
	return nil
}
