package inputs

import (
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
	folder := t.TempDir()
	for name, c := range map[string]struct {
		change func(*recipe.Recipe)
		want   []string
	}{
		"missing file":          {func(r *recipe.Recipe) { r.Data.Problems = "/nowhere/p.jsonl" }, []string{"data.problems", "no file /nowhere/p.jsonl", "correct the path"}},
		"folder for a file":     {func(r *recipe.Recipe) { r.Data.Problems = folder }, []string{"data.problems", folder, "is a folder"}},
		"row that is no JSON":   {func(r *recipe.Recipe) { r.Data.Problems = broken }, []string{"data.problems", broken + " line 3", "correct or delete the row"}},
		"held-out row unusable": {func(r *recipe.Recipe) { r.Data.HeldOut = noAnswer }, []string{"data.held_out", "line 2", "answer"}},
		"benchmark missing":     {func(r *recipe.Recipe) { r.Data.Benchmarks = []string{"/nowhere/b"} }, []string{"data.benchmarks[0]", "/nowhere/b"}},
		"empty file":            {func(r *recipe.Recipe) { r.Data.Problems = empty }, []string{"holds no problem"}},
		"demonstration broken":  {func(r *recipe.Recipe) { r.Data.Demos = demo }, []string{"data.demonstrations", "line 1", "turns"}},
		"model folder missing":  {func(r *recipe.Recipe) { r.Model.From = "/nowhere/m" }, []string{"model.from", "/nowhere/m", "config.json"}},
		"wrong model folder":    {func(r *recipe.Recipe) { r.Model.From = folder }, []string{"model.from", folder, "config.json", "Qwen3"}},
		"file as model folder":  {func(r *recipe.Recipe) { r.Model.From = broken }, []string{"is not a folder"}},
	} {
		t.Run(name, func(t *testing.T) {
			var r recipe.Recipe
			c.change(&r)
			err := Check(r)
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

func TestRowsThatCurationRemovesAreNoInputError(t *testing.T) {
	path := write(t, "p.jsonl", row+`{"problem": "What?"}`+"\n")
	if err := Check(recipe.Recipe{Data: recipe.Data{Problems: path}}); err != nil {
		t.Error(err)
	}
}

func TestAllThatIsWrongIsToldAtOnce(t *testing.T) {
	err := Check(recipe.Recipe{Data: recipe.Data{Problems: "/nowhere/p", Demos: "/nowhere/d"}})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/p") || !strings.Contains(err.Error(), "/nowhere/d") {
		t.Errorf("error %v, want one that names both files", err)
	}
}

func TestInputsAreStoredUnderNamesThatPinTheirContent(t *testing.T) {
	path := write(t, "p.jsonl", row)
	r := recipe.Recipe{Data: recipe.Data{Problems: path, Benchmarks: []string{path}}}
	p, err := Prepare(r)
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
	q, err := Prepare(r)
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
