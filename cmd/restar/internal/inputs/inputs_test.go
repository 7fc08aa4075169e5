package inputs

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const row = `{"problem": "What is 2+3?", "answer": "5"}` + "\n"

func TestWrongFilesAreNamedWithLineAndFix(t *testing.T) {
	broken := write(t, "p.jsonl", row+"\n"+`{"problem": "What is`+"\n")
	noAnswer := write(t, "h.jsonl", row+`{"problem": "What?"}`+"\n")
	empty := write(t, "e.jsonl", "\n")
	demo := write(t, "d.jsonl", `{"problem": "x", "turns": []}`+"\n")
	calls := write(t, "c.jsonl", demoOf("python"))
	fractions := write(t, "f.jsonl", row+strings.Repeat(`{"problem": "What is half of one?", "answer": "1/2"}`+"\n", 2)+row)
	named := write(t, "n.jsonl", row+`{"id": "aime-7", "problem": "How long?", "answer": "12 cm"}`+"\n")
	folder := t.TempDir()
	for name, c := range map[string]struct {
		change func(*recipe.Recipe)
		want   []string
	}{
		"missing file":          {func(r *recipe.Recipe) { r.Data.Problems = "/nowhere/p.jsonl" }, []string{"data.problems", "no file /nowhere/p.jsonl", "correct the path"}},
		"folder for a file":     {func(r *recipe.Recipe) { r.Data.Problems = folder }, []string{"data.problems", folder, "is a folder"}},
		"row that is no JSON":   {func(r *recipe.Recipe) { r.Data.Problems = broken }, []string{"data.problems", broken + " line 3", "correct or delete the row"}},
		"held-out row unusable": {func(r *recipe.Recipe) { r.Data.HeldOut = noAnswer }, []string{"data.held_out", "line 2", "answer"}},
		"held-out answer":       {func(r *recipe.Recipe) { r.Data.HeldOut = fractions }, []string{"data.held_out", fractions, "2 of 4 rows", "line-2", "1/2", "integers"}},
		"held-out answer by id": {func(r *recipe.Recipe) { r.Data.HeldOut = named }, []string{"data.held_out", "the first is aime-7", "12 cm"}},
		"benchmark missing":     {func(r *recipe.Recipe) { r.Data.Benchmarks = []string{"/nowhere/b"} }, []string{"data.benchmarks[0]", "/nowhere/b"}},
		"empty file":            {func(r *recipe.Recipe) { r.Data.Problems = empty }, []string{"holds no problem"}},
		"demonstration broken":  {func(r *recipe.Recipe) { r.Data.Demos = demo }, []string{"data.demonstrations", "line 1", "turns"}},
		"calls of another tool": {func(r *recipe.Recipe) { r.Data.Demos, r.Agent.Tool = calls, tokenizer.JupyterToolName }, []string{"data.demonstrations", calls, `"python"`, `agent.tool "jupyter_code"`}},
		"model folder missing":  {func(r *recipe.Recipe) { r.Model.From = "/nowhere/m" }, []string{"model.from", "/nowhere/m", "config.json"}},
		"wrong model folder":    {func(r *recipe.Recipe) { r.Model.From = folder }, []string{"model.from", folder, "config.json", "Qwen3"}},
		"file as model folder":  {func(r *recipe.Recipe) { r.Model.From = broken }, []string{"is not a folder"}},
	} {
		t.Run(name, func(t *testing.T) {
			var r recipe.Recipe
			c.change(&r)
			err := Check(t.Context(), r)
			if fault.Code(err) != fault.User {
				t.Fatalf("error %v, want one that the user can mend", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("message lacks %q: %v", want, err)
				}
			}
		})
	}
}

// demoOf is a demonstration that calls a tool.
func demoOf(tool string) string {
	call := tokenizer.PythonTool(tool).Call("print(5)", "")
	data, _ := json.Marshal(map[string]any{"problem": "What is 2+3?", "turns": []map[string]string{ // never fails
		{"role": "assistant", "text": "</reason>\n" + call}, {"role": "tool", "text": "Tool call success\nstdout: 5\n"}, {"role": "assistant", "text": "</reason>\n<answer>\\boxed{5}</answer>"},
	}})
	return string(data) + "\n"
}

func TestDemonstrationsMayShowMistakesBesideTheRecipesTool(t *testing.T) {
	for name, lines := range map[string]string{
		"its tool": demoOf("python"), "another too": demoOf("pyhton") + demoOf("python"),
		"no call": `{"problem": "x", "turns": [{"role": "assistant", "text": "</reason>\n<answer>\\boxed{5}</answer>"}]}` + "\n",
	} {
		r := recipe.Recipe{Data: recipe.Data{Demos: write(t, "d.jsonl", lines)}, Agent: recipe.Agent{Tool: "python"}}
		if err := Check(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRowsThatCurationRemovesAreNoInputError(t *testing.T) {
	path := write(t, "p.jsonl", row+`{"problem": "What?"}`+"\n")
	if err := Check(t.Context(), recipe.Recipe{Data: recipe.Data{Problems: path}}); err != nil {
		t.Error(err)
	}
}

func TestAllThatIsWrongIsToldAtOnce(t *testing.T) {
	err := Check(t.Context(), recipe.Recipe{Data: recipe.Data{Problems: "/nowhere/p", Demos: "/nowhere/d"}})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/p") || !strings.Contains(err.Error(), "/nowhere/d") {
		t.Errorf("error %v, want one that names both files", err)
	}
}

func TestInputsAreStoredUnderNamesThatPinTheirContent(t *testing.T) {
	path := write(t, "p.jsonl", row)
	r := recipe.Recipe{Data: recipe.Data{Problems: path, Benchmarks: []string{path}}}
	p, err := Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory()
	for range 2 { // a second upload changes nothing
		if err := p.Upload(t.Context(), s, "run"); err != nil {
			t.Fatal(err)
		}
	}
	body, _, err := s.Get(t.Context(), activities.InputKey("run", activities.InputProblems))
	if err != nil || string(body) != row {
		t.Errorf("the store holds %q (%v), want the file", body, err)
	}
	if r.Data.Benchmarks[0] != path {
		t.Error("the caller's recipe was changed")
	}
	if err := os.WriteFile(path, []byte(row+row), 0o600); err != nil {
		t.Fatal(err)
	}
	q, err := Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	diff, err := Difference(p.Recipe, q.Recipe)
	if err != nil || !strings.Contains(diff, "data.problems is") {
		t.Errorf("difference %q (%v), want one that names data.problems", diff, err)
	}
}

func TestDifferenceNamesKeysAndBothValues(t *testing.T) {
	a := recipe.Recipe{Seed: 1<<63 + 1, Stages: []recipe.Stage{{Name: "s", Steps: 3}}}
	b := recipe.Recipe{Seed: 1 << 63, Stages: []recipe.Stage{{Name: "s", Steps: 4}, {Name: "t"}}}
	got, err := Difference(a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seed is 9223372036854775808, was 9223372036854775809", "stages[0].steps is 4, was 3", "stages[1].name is t, was absent"} {
		if !strings.Contains(got, want) {
			t.Errorf("difference lacks %q: %s", want, got)
		}
	}
	if got, err := Difference(a, a); got != "" || err != nil {
		t.Errorf("a recipe differs from itself: %q (%v)", got, err)
	}
}

func TestARecipeThatAnEarlierVersionStoredIsTheSameOne(t *testing.T) {
	asked, err := recipe.Read("../../../../deploy/recipes/learn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	held := asked
	held.RL.Supervision, held.RL.Penalty, held.RL.Verifier = "", "", ""
	if got, err := Difference(held, asked); got != "" || err != nil {
		t.Errorf("it differs: %s (%v)", got, err)
	}
	asked.RL.Penalty = "code"
	if got, err := Difference(held, asked); got != "rl.penalty is code, was paper" || err != nil {
		t.Errorf("another penalty: %q (%v)", got, err)
	}
}

func TestHeldOutProblemsThatAreTooLongForTheModelAreNamed(t *testing.T) {
	tok, err := tokenizer.Train([]string{"What is two and three?"}, 320, tokenizer.Markers())
	if err != nil {
		t.Fatal(err)
	}
	r := recipe.Defaults()
	r.Eval.Problems = 2
	r.Data.HeldOut = write(t, "h.jsonl", row+`{"id": "long", "problem": "`+strings.Repeat("What is it? ", 3000)+`", "answer": "5"}`+"\n")
	if err := checkPrompts(r, tok); err == nil || !strings.Contains(err.Error(), "1 of the first 2") || !strings.Contains(err.Error(), "long with") {
		t.Errorf("error %v, want one that counts and names the problem", err)
	}
	r.Eval.Problems = 1
	if err := checkPrompts(r, tok); err != nil {
		t.Errorf("a problem that is not evaluated is refused: %v", err)
	}
}

// modelFolder makes a folder of a tiny model whose tokenizer has the given special tokens.
func modelFolder(t *testing.T, specials []string) string {
	t.Helper()
	dir := t.TempDir()
	tok, err := tokenizer.Train([]string{"What is two and three?"}, 320, specials)
	if err == nil {
		err = tok.Save(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(model.Config{VocabSize: 320, HiddenSize: 16, IntermediateSize: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, MaxPosition: 4096, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.02}, 1)
	if err == nil {
		err = m.Save(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestATokenizerWithoutTheMarkersOfTurnsIsRefused(t *testing.T) {
	r := recipe.Defaults()
	r.Model.From = modelFolder(t, tokenizer.Markers())
	if err := Check(t.Context(), r); err != nil {
		t.Fatalf("a model with all markers is refused: %v", err)
	}
	for _, missing := range []string{"<|im_start|>", "<|im_end|>", "<|endoftext|>"} {
		r.Model.From = modelFolder(t, slices.DeleteFunc(tokenizer.Markers(), func(m string) bool { return m == missing }))
		err := Check(t.Context(), r)
		if fault.Code(err) != fault.User || !strings.Contains(err.Error(), "lacks "+missing+",") || !strings.Contains(err.Error(), r.Model.From) {
			t.Errorf("without %s: error %v, want one that names it and the file", missing, err)
		}
	}
}

func TestAModelInSeveralFilesIsReadAsOne(t *testing.T) {
	r := recipe.Defaults()
	r.Model.From = modelFolder(t, tokenizer.Markers())
	m, err := model.Load(r.Model.From)
	if err == nil {
		err = m.SaveAs(r.Model.From, model.SaveOptions{ShardBytes: 20000})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // as a worker fetches it
	for _, f := range p.files {
		if name, ok := strings.CutPrefix(f.name, "model-"); ok {
			if err := os.WriteFile(filepath.Join(dir, name), f.body, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := model.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range got.Params() {
		if !slices.Equal(w.Data, m.Params()[i].Data) {
			t.Errorf("%s differs", w.Name)
		}
	}
}

func TestWhatCannotBeReadInAModelFolderIsTheUsersToMend(t *testing.T) {
	for _, name := range []string{"generation_config.json", "tokenizer_config.json", "model.safetensors"} {
		r := recipe.Defaults()
		r.Model.From = modelFolder(t, tokenizer.Markers())
		path := filepath.Join(r.Model.From, name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil { // would hold a reader for ever
			t.Fatal(err)
		}
		err := Check(t.Context(), r)
		if fault.Code(err) != fault.User || !strings.Contains(err.Error(), path+" is not a file") {
			t.Errorf("%s: error %v, want one that names it", name, err)
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(t.Context(), r); fault.Code(err) != fault.User || !strings.Contains(err.Error(), path) {
			t.Errorf("%s, changed after the check: error %v, want one that names it", name, err)
		}
	}
}

func TestAnEndOfASequenceThatIsNoIDIsRefusedBeforeARunBegins(t *testing.T) {
	r := recipe.Defaults()
	r.Model.From = modelFolder(t, tokenizer.Markers())
	for text, refused := range map[string]bool{`{"eos_token_id": [7, 9]}`: false, `{"eos_token_id": ["7"]}`: true, `{`: true} {
		if err := os.WriteFile(filepath.Join(r.Model.From, model.GenerationFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Check(t.Context(), r)
		if refused && (fault.Code(err) != fault.User || !strings.Contains(err.Error(), model.GenerationFile)) || !refused && err != nil {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

func TestAReadThatNeverEndsEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan struct{})
	go func() { <-entered; cancel() }()
	_, err := Await(ctx, func() (struct{}, error) { close(entered); select {} })
	if fault.Code(err) != fault.Interrupted {
		t.Errorf("error %v, want an interrupt", err)
	}
}
