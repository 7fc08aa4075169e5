package product

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheOwnParametersOfTheBasesAlgorithmStayWithIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "base.yaml")
	must(t, os.WriteFile(path, []byte("seed: 1\ndata: {problems: ../p.jsonl, benchmarks: [b.jsonl, /c.jsonl]}\nrl: {algorithm: grpo-roc, selection: code, learning_rate: 0.001}\nstages: [{steps: 3, keep: 5}, {steps: 4}]\n"), 0o600))
	b, err := ReadBase(path)
	must(t, err)
	text, err := b.Derive(Change{Algorithm: "grpo", Seed: 7, Stages: yaml.MapSlice{{Key: "steps", Value: 9}, {Key: "keep", Value: nil}}})
	must(t, err)
	dir := filepath.Dir(path)
	for _, want := range []string{"seed: 7", "problems: " + filepath.Join(filepath.Dir(dir), "p.jsonl"), "- " + filepath.Join(dir, "b.jsonl"), "- /c.jsonl", "algorithm: grpo\n", "learning_rate: 0.001"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the recipe lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "selection") || strings.Contains(string(text), "keep") || strings.Count(string(text), "steps: 9") != 2 {
		t.Errorf("the recipe has RoC's selection, stages of other lengths, or a key that was taken away:\n%s", text)
	}
	if again, err := b.Derive(Change{Seed: 7}); err != nil || !strings.Contains(string(again), "selection: code") || strings.Count(string(again), "steps: 3") != 1 {
		t.Errorf("the base was changed, or lost its selection (%v):\n%s", err, again)
	}
}
