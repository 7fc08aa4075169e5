package activities

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/curate"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/store"
)

// given is a run whose recipe takes its problems from files.
func given(t *testing.T, change func(*Recipe), files map[string]string) *store.Memory {
	t.Helper()
	rec := toyRecipe(t)
	rec.Data.Problems, rec.Data.Generate.Problems = "problems.jsonl", 0
	change(&rec)
	st := store.NewMemory()
	putRecipe(t, st, rec)
	for name, body := range files {
		put(t, st, InputKey(benchRun, name), []byte(body))
	}
	return st
}

func row(id, text, answer string) string {
	b, _ := json.Marshal(problem.Problem{ID: id, Problem: text, Answer: answer})
	return string(b) + "\n"
}

// rows are n problems that share nothing.
func rows(n int) string {
	words := []string{"apples", "boats", "candles", "doors", "eggs", "flags", "goats", "hats", "inks", "jars", "kites", "lamps"}
	var b strings.Builder
	for i := range n {
		a, c := words[i%len(words)], words[(i*5+i/len(words)+1)%len(words)]
		b.WriteString(row(fmt.Sprintf("r%d", i), fmt.Sprintf("Count %s, then %s: how many of the %dth kind?", a, c, i), fmt.Sprint(1000+i)))
	}
	return b.String()
}

func curated(t *testing.T, st store.Store) (CurateResult, curate.Report, []problem.Problem, []problem.Problem) {
	t.Helper()
	b := process(t, st)
	got := call[CurateResult](b, b.cur.Curate, CurateInput{Run: benchRun})
	var report curate.Report
	must(t, json.Unmarshal(get(t, st, got.Report.Key), &report))
	train, err := b.cur.Runs.Problems(t.Context(), got.Train)
	must(t, err)
	heldOut, err := b.cur.Runs.Problems(t.Context(), got.HeldOut)
	must(t, err)
	return got, report, train, heldOut
}

func TestEveryRemovedRowHasItsReason(t *testing.T) {
	const benchmark = "A train leaves the old station at noon and meets another train after some hours of travel"
	const held = "Seven grey wolves walk over nine white hills under one bright moon tonight"
	input := row("good", "What is six times seven?", "42") + "not a row\n" +
		row("half", "What is one over two?", "1/2") +
		row("huge", "What is ten to the fortieth?", "1"+strings.Repeat("0", 40)) +
		row("leak", "The answer is 123456. What is it?", "123456") +
		row("twice", "What is  SIX times seven?", "42") +
		row("yes", "Is a hundred even or odd, as a number?", "10") + row("no", "Is a hundred even or odd, as a number?", "11") +
		row("bench", benchmark+" and more?", "5") +
		row("held", "Say: "+held+". How many?", "6") +
		row("long", "What is "+strings.Repeat("one and ", 900)+"one?", "901")
	st := given(t, func(r *Recipe) {
		r.Data.HeldOut, r.Data.Generate.HeldOut, r.Data.HeldOutOverlap = "held-out.jsonl", 0, "ngram"
		r.Data.Benchmarks = []string{"bench.jsonl"}
	}, map[string]string{InputProblems: input, InputHeldOut: row("h", held+".", "3"), InputBenchmark(0): row("b", benchmark+".", "4")})
	got, report, train, heldOut := curated(t, st)
	want := map[string]int{
		"bad_row": 1, "answer_not_integer": 1, "answer_too_long": 1, "answer_leak": 1, "duplicate": 1, "conflicting_answer": 2,
		"benchmark_overlap": 1, "held_out_overlap": 1, "prompt_overlong": 1,
	}
	if !maps.Equal(got.Removed, want) {
		t.Errorf("removed %v, want %v", got.Removed, want)
	}
	if len(train) != 1 || train[0].ID != "good" || len(heldOut) != 1 || report.Rows != 11 || report.Kept+len(report.Removed) != report.Rows {
		t.Errorf("kept %v of %d rows, held out %v; want the good row", train, report.Rows, heldOut)
	}
	for _, r := range report.Removed {
		if r.Detail == "" {
			t.Errorf("%+v has no detail", r)
		}
	}
}

func TestAHeldOutShareIsDisjointAndSeeded(t *testing.T) {
	splits := map[string]bool{}
	for _, seed := range []uint64{5, 6} {
		var last []problem.Problem
		for range 2 {
			st := given(t, func(r *Recipe) {
				r.Seed, r.Data.Generate.HeldOut, r.Data.HeldOutShare = seed, 0, 0.25
			}, map[string]string{InputProblems: rows(40)})
			_, _, train, heldOut := curated(t, st)
			if len(heldOut) != 10 || len(train) != 30 {
				t.Fatalf("%d held out and %d to train on of 40, want 10 and 30", len(heldOut), len(train))
			}
			for _, p := range train {
				if slices.Contains(heldOut, p) {
					t.Fatalf("%v is in both sets", p)
				}
			}
			if last != nil && !slices.Equal(last, heldOut) {
				t.Fatalf("seed %d holds out %v, then %v", seed, last, heldOut)
			}
			last = heldOut
		}
		splits[fmt.Sprint(last)] = true
	}
	if len(splits) != 2 {
		t.Fatal("two seeds hold out the same problems")
	}
}

func TestAHeldOutShareIsKeptApartAsTheRecipeSays(t *testing.T) {
	var input strings.Builder
	for i := range 20 { // one wording, different numbers
		input.WriteString(row(fmt.Sprint(i), fmt.Sprintf("How many steps does it take to climb the tower when it has %d floors?", 500+i), fmt.Sprint(9000+i)))
	}
	files := map[string]string{InputProblems: input.String() + rows(20)}
	share := func(overlap string) (CurateResult, []problem.Problem) {
		st := given(t, func(r *Recipe) {
			r.Data.Generate.HeldOut, r.Data.HeldOutShare, r.Data.HeldOutOverlap = 0, 0.25, overlap
		}, files)
		got, report, train, heldOut := curated(t, st)
		if report.Rows != 40 || report.Kept+len(report.Removed) != report.Rows || len(train)+len(heldOut) != report.Kept {
			t.Fatalf("%s: %d rows, %d kept, %d removed, %d to train on, %d held out", overlap, report.Rows, report.Kept, len(report.Removed), len(train), len(heldOut))
		}
		return got, train
	}
	if got, train := share("text"); len(train) != 30 || len(got.Removed) != 0 {
		t.Fatalf("by text: %d to train on, removed %v; want 30 and none", len(train), got.Removed)
	}
	got, train := share("ngram")
	for _, p := range train {
		if strings.HasPrefix(p.Problem, "How many steps") {
			t.Fatalf("%q trains although a held-out problem shares its words; removed %v", p.Problem, got.Removed)
		}
	}
}

func TestCurationIsDeterministicAndIdempotent(t *testing.T) {
	files := map[string]string{InputProblems: rows(20)}
	var all []map[string]string
	for range 2 {
		st := given(t, func(*Recipe) {}, files)
		first, _, _, _ := curated(t, st)
		objects := contents(t, st)
		second, _, _, _ := curated(t, st)
		if fmt.Sprint(first) != fmt.Sprint(second) || len(contents(t, st)) != len(objects) {
			t.Fatalf("curated again: %+v, want %+v", second, first)
		}
		all = append(all, canonical(t, st))
	}
	wantSame(t, "another run", all[1], all[0])
}

func TestInputsThatCannotWorkAreTheUsersToMend(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Recipe)
		files  map[string]string
		words  string
	}{
		"no problem left":   {func(*Recipe) {}, map[string]string{InputProblems: row("a", "What is a half?", "1/2")}, "no training problem is left"},
		"bad held-out row":  {func(r *Recipe) { r.Data.HeldOut, r.Data.Generate.HeldOut = "h", 0 }, map[string]string{InputProblems: rows(3), InputHeldOut: "{\n"}, "held-out.jsonl: 1 bad rows"},
		"bad demonstration": {func(r *Recipe) { r.Data.Demos, r.Data.Generate.Demos = "d", 0 }, map[string]string{InputProblems: rows(3), InputDemos: "{\n"}, "demonstrations.jsonl: 1 bad rows"},
		"no demonstration":  {func(r *Recipe) { r.Data.Demos, r.Data.Generate.Demos = "d", 0 }, map[string]string{InputProblems: rows(3), InputDemos: "\n"}, "no demonstration"},
	} {
		b := process(t, given(t, c.change, c.files))
		_, err := try[CurateResult](b, b.cur.Curate, CurateInput{Run: benchRun})
		if text, ok := IsInputError(err); !ok || !strings.Contains(text, c.words) {
			t.Errorf("%s: error %v, want one that no retry mends and that says %q", name, err, c.words)
		}
	}
}
