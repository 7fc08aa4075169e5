package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// devserver finds the embedded server's program, which `make build` makes, or skips the test.
func devserver(t *testing.T) {
	t.Helper()
	path, err := filepath.Abs("../../bin/restar-devserver")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("bin/restar-devserver is not built (make build)")
	}
	t.Setenv("RESTAR_DEVSERVER", path)
	for _, name := range []string{"RESTAR_TEMPORAL", "RESTAR_S3_ENDPOINT", "RESTAR_BUCKET"} {
		t.Setenv(name, "")
	}
}

// interrupter is an output that sends Ctrl-C once it has read a text.
type interrupter struct {
	bytes.Buffer
	text string
	stop context.CancelFunc
}

func (i *interrupter) Write(p []byte) (int, error) {
	n, err := i.Buffer.Write(p)
	if strings.Contains(i.String(), i.text) {
		i.stop()
	}
	return n, err
}

func want(t *testing.T, step string, code, wantCode int, out string, parts ...string) {
	t.Helper()
	if code != wantCode {
		t.Fatalf("%s: exit code %d, want %d:\n%s", step, code, wantCode, out)
	}
	for _, p := range parts {
		if !strings.Contains(out, p) {
			t.Fatalf("%s: output lacks %q:\n%s", step, p, out)
		}
	}
}

// minutes reads how long a run took from a file of figures.
func minutes(t *testing.T, path string) float64 {
	t.Helper()
	var f struct {
		Minutes float64 `json:"minutes_after_build"`
	}
	body, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(body, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f.Minutes
}

// curvesOf checks that a file holds the run's two steps between its two evaluations, each with scores for both numbers of samples.
func curvesOf(t *testing.T, path string) {
	t.Helper()
	var c struct {
		Seed    uint64  `json:"seed"`
		Stages  float64 `json:"seconds_of_stages"`
		Minutes float64 `json:"minutes_rl"`
		Evals   []struct {
			Step   int64     `json:"step"`
			PassAt []float64 `json:"pass_at"`
			MajAt  []float64 `json:"maj_at"`
		} `json:"evaluations"`
		Steps []struct {
			Step int64 `json:"step"`
		} `json:"steps"`
	}
	body, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(body, &c)
	}
	if err != nil || c.Seed != 11 || len(c.Evals) != 2 || c.Evals[0].Step != 0 || c.Stages <= 0 || 60*c.Minutes < c.Stages {
		t.Fatalf("curves %s (%v), want two evaluations and the time of the stages within that of the run", body, err)
	}
	if last := int64(len(c.Steps)); c.Evals[1].Step != last || last > 0 && c.Steps[last-1].Step != last {
		t.Errorf("the last evaluation is at step %d of %d", c.Evals[1].Step, last)
	}
	for _, e := range c.Evals {
		if len(e.PassAt) != 2 || len(e.MajAt) != 2 {
			t.Errorf("an evaluation of 2 samples has %d and %d scores", len(e.PassAt), len(e.MajAt))
		}
	}
}

func TestOneCommandTrainsIsInterruptedAndGoesOn(t *testing.T) {
	devserver(t)
	text := func(seed string) []string {
		return []string{"seed: 7", "seed: " + seed, "sft: {steps: 2, batch: 4", "sft: {steps: 12, save_every: 4, batch: 4", "isolation: B", "isolation: B, preload: [math]",
			"generate:", "held_out_overlap: text\n  generate:", "max_position_embeddings: 512", "max_position_embeddings: 1024", "max_prompt_tokens: 256", "max_prompt_tokens: 900"}
	}
	recipe, other, dir := writeRecipe(t, text("11")...), writeRecipe(t, text("12")...), t.TempDir()

	ctx, stop := context.WithCancel(t.Context())
	first := &interrupter{text: "run tiny: started", stop: stop}
	code := execute(ctx, []string{"run", recipe, "--dir", dir}, first, first)
	want(t, "interrupted", code, 130, first.String(), "Temporal UI: http://127.0.0.1:", "goes on from where it was")

	code, out := run(t, "run", other, "--dir", dir)
	want(t, "another recipe", code, 2, out, "run tiny exists with another recipe: seed is 12, was 11", "--run")

	code, out = run(t, "run", recipe, "--dir", dir, "--figures", filepath.Join(dir, "figures.json"), "--curves", filepath.Join(dir, "curves.json"))
	want(t, "continued", code, 0, out, "found, going on", "sft to stage1", "run tiny is done", "report.html")
	for _, name := range []string{"report.html", "figures.json", "model/config.json", "model/tokenizer.json", "model/model.safetensors"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}

	curvesOf(t, filepath.Join(dir, "curves.json"))

	again := filepath.Join(dir, "again.json")
	code, out = run(t, "run", recipe, "--dir", dir, "--json", "--figures", again)
	want(t, "finished already", code, 0, out)
	if a, b := minutes(t, filepath.Join(dir, "figures.json")), minutes(t, again); a <= 0 || a != b {
		t.Errorf("the run took %v minutes, and %v when asked again; want the time from its first start to its end", a, b)
	}
	for line := range strings.Lines(out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("--json printed %q", line)
		}
	}

	code, out = run(t, "status", "--dir", dir)
	want(t, "status without a stack", code, 2, out, "no stack is running")

	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(rows, []byte(`{"question": "What is 2+3?", "answer": "so #### 5"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out = run(t, "eval", filepath.Join(dir, "model"), rows, "--dir", dir, "--samples", "2", "--response-tokens", "32", "--isolation", "B")
	want(t, "evaluation of the trained model", code, 0, out, "avg@2", "is done")

	t.Run("TheExportedModelTrainsOnAStackOfOnesOwn", func(t *testing.T) { trainOnOwnStack(t, filepath.Join(dir, "model")) })
}
