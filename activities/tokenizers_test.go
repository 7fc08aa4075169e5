package activities

import (
	"bytes"
	"testing"

	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
)

func TestARunTakesTheTokenizerThatItsRecipeNames(t *testing.T) {
	given, err := tokenizer.Train([]string{"a tokenizer of one's own"}, 300, tokenizer.Markers())
	if err != nil {
		t.Fatal(err)
	}
	files, err := given.Files()
	if err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory()
	for name, body := range files {
		if _, err := s.Put(t.Context(), InputKey("r", modelInput(name)), body, store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	rec := Recipe{Model: recipe.Model{Init: &recipe.ModelInit{Tokenizer: "0123-folder", Vocab: 1024}}}
	tok, err := (&Curation{Store: s}).tokenizer(t.Context(), rec, "r", rawSets{})
	if err != nil {
		t.Fatal(err)
	}
	if tok.VocabSize() != given.VocabSize() {
		t.Errorf("%d ids, want the %d of the recipe's tokenizer", tok.VocabSize(), given.VocabSize())
	}
	kept, _, err := s.Get(t.Context(), modelKey("r", "tokenizer.json"))
	if err != nil || !bytes.Equal(kept, files["tokenizer.json"]) {
		t.Errorf("the run's tokenizer.json is not the file given (%v)", err)
	}
}
