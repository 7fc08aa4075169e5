package inputs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// tokenizerFolder trains a tokenizer with the markers given and saves it.
func tokenizerFolder(t *testing.T, markers []string) string {
	t.Helper()
	tok, err := tokenizer.Train([]string{"some text"}, 400, markers)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := tok.Save(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newModel(dir string, vocab int) recipe.Recipe {
	return recipe.Recipe{Model: recipe.Model{Init: &recipe.ModelInit{Tokenizer: dir, Vocab: vocab}}}
}

func TestATokenizerThatCannotServeANewModelIsNamedWithItsFix(t *testing.T) {
	good := tokenizerFolder(t, tokenizer.Markers())
	if err := Check(t.Context(), newModel(good, 400)); err != nil {
		t.Errorf("a good folder is refused: %v", err)
	}
	for name, c := range map[string]struct {
		recipe recipe.Recipe
		want   []string
	}{
		"no folder":       {newModel("/nowhere/t", 400), []string{"model.init.tokenizer", "/nowhere/t", "tokenizer.json"}},
		"no turn markers": {newModel(tokenizerFolder(t, []string{"<|endoftext|>"}), 400), []string{"model.init.tokenizer", "<|im_start|>"}},
		"too few rows":    {newModel(good, 256), []string{"model.init.vocab_size", "256", "at least"}},
	} {
		err := Check(t.Context(), c.recipe)
		if fault.Code(err) != fault.User {
			t.Errorf("%s: error %v, want one that the user can mend", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: message lacks %q: %v", name, want, err)
			}
		}
	}
}

func TestATokenizersFolderIsStoredAndItsContentPinned(t *testing.T) {
	dir := tokenizerFolder(t, tokenizer.Markers())
	r := newModel(dir, 400)
	p, err := Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Model.Init.Tokenizer != dir {
		t.Error("the caller's recipe was changed")
	}
	s := store.NewMemory()
	if err := p.Upload(t.Context(), s, "run"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := s.Get(t.Context(), activities.InputKey("run", "model-"+name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not in the store as it is in the folder (%v)", name, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "tokenizer_config.json")); err != nil {
		t.Fatal(err)
	}
	q, err := Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if p.Recipe.Model.Init.Tokenizer == q.Recipe.Model.Init.Tokenizer {
		t.Errorf("another folder has the same name %q", q.Recipe.Model.Init.Tokenizer)
	}
}
