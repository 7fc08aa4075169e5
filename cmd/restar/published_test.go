package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/restar-rl/restar/workers/model"
)

// readFile reads a file that must be there.
func readFile(t *testing.T, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// The run takes about two minutes on two cores, so it is asked for.
func TestThePublishedVocabularyGoesThroughTheWholePipeline(t *testing.T) {
	if os.Getenv("RESTAR_QWEN3_RUN") == "" {
		t.Skip("RESTAR_QWEN3_RUN is not set")
	}
	devserver(t)
	published := filepath.FromSlash("../../.cache/qwen3-tokenizer/tokenizer.json")
	if _, err := os.Stat(published); err != nil {
		t.Skipf("the README's step has not fetched the published tokenizer: %v", err)
	}
	dir := t.TempDir()
	curves := filepath.Join(dir, "curves.json")
	code, out := run(t, "run", "../../deploy/recipes/qwen3-tokenizer.yaml", "--dir", dir, "--curves", curves)
	want(t, "the README's step", code, 0, out, "sft to stage1", "run qwen3-tokenizer is done", "report.html")

	var c struct {
		Steps []struct {
			Step int64 `json:"step"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(readFile(t, curves), &c); err != nil || len(c.Steps) != 2 || c.Steps[1].Step != 2 {
		t.Errorf("steps %+v (%v), want two", c.Steps, err)
	}
	cfg, err := model.ReadConfig(filepath.Join(dir, "model", model.ConfigFile))
	if err != nil || cfg.VocabSize != 151936 {
		t.Errorf("the model has %d rows (%v), want the published 151936", cfg.VocabSize, err)
	}
	if !bytes.Equal(readFile(t, filepath.Join(dir, "model", "tokenizer.json")), readFile(t, published)) {
		t.Error("the exported tokenizer.json is not the published one")
	}
}
