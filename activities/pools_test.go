package activities

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/store"
)

func TestACallRunsInTheSandboxOfTheRecipe(t *testing.T) {
	st, _ := toyRun(t)
	in := sliceOf(t, st)
	in.FirstSample, in.Samples = 1, 1 // the sample that calls once, then answers
	b := process(t, st)
	t.Cleanup(b.pool.Close)
	first, err := b.pool.Get(t.Context(), b.rec.Sandbox)
	if err != nil {
		t.Skipf("no sandbox on this machine: %v", err)
	}
	if again, err := b.pool.Get(t.Context(), b.rec.Sandbox); err != nil || again != first {
		t.Fatalf("one section of a recipe has two pools (%v)", err)
	}
	pools := b.ro.Pools
	writing(t, b, in.Weights.Version)
	b.ro.Pools = pools
	if got := call[SliceResult](b, b.ro.Slice, in); got.Correct != 1 || got.Calls != 1 || got.CallErrors != 0 {
		t.Fatalf("%+v, want one call and a correct answer", got)
	}
	records, err := store.ReadJournal(t.Context(), st, sliceJournal(in))
	must(t, err)
	logs, err := readLogs(records)
	must(t, err)
	x := logs.final[1]
	if text := x.Turns[0].Calls[0].Text; !strings.Contains(text, "stdout: 0\n") {
		t.Fatalf("the tool says %q, want what the program printed", text)
	}
}

func TestTheTextsOfToolResponsesAreTheRecipes(t *testing.T) {
	rec := recipe.Defaults()
	rec.Sandbox.Texts = recipe.Texts{Located: "line {line}: {type}", NoEcho: true}
	pools := &Pools{MaxRunning: 1}
	t.Cleanup(pools.Close)
	r, err := pools.Get(t.Context(), rec.Sandbox)
	if err != nil {
		t.Skipf("no sandbox on this machine: %v", err)
	}
	for code, want := range map[string]string{"x = 0\n1 / x": "line 2: ZeroDivisionError", "5": ""} {
		if got, err := r.Run(t.Context(), sandbox.Call{ID: "x", Code: code}); err != nil || got.Stderr != want || got.Stdout != "" {
			t.Errorf("%q leaves %+v, %v, expected %q on stderr alone", code, got, err, want)
		}
	}
	for _, timed := range []bool{false, true} {
		rec.Agent.ExecutionTime = timed
		if f := AgentConfig(rec).Format; f.ExecutionTime != timed {
			t.Errorf("execution_time %v gives the format %+v", timed, f)
		}
	}
}
