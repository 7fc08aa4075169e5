package activities

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/store"
)

// untuned is the run as it was before fine-tuning.
func untuned(t *testing.T) (map[string][]byte, prepared) {
	t.Helper()
	_, p := toyRun(t)
	st := store.NewMemory()
	putRecipe(t, st, toyRecipe(t))
	b := process(t, st)
	if again := call[CurateResult](b, b.cur.Curate, CurateInput{Run: benchRun}); fmt.Sprint(again) != fmt.Sprint(p.curated) {
		t.Fatalf("curated again: %+v, want %+v", again, p.curated)
	}
	return contents(t, st), p
}

// tuned is what the whole run decided before stage one.
func tuned(t *testing.T) map[string]string {
	t.Helper()
	st, _ := toyRun(t)
	return without(canonical(t, st), "/one/")
}

func tuneSteps(p prepared, from, to int) func(*bench) error {
	in := FineTuneInput{Run: benchRun, Demos: p.curated.Demos, From: from, To: to}
	return func(b *bench) error { _, err := try[FineTuneResult](b, b.tr.FineTuneSteps, in); return err }
}

func TestAFaultAtAnyWriteOfFineTuningChangesNothing(t *testing.T) {
	start, p := untuned(t)
	prepare := func(b *bench) error {
		_, err := try[FineTuneResult](b, b.tr.PrepareModel, FineTuneInput{Run: benchRun, Demos: p.curated.Demos})
		return err
	}
	everyFault(t, start, tuned(t), []func(*bench) error{prepare, tuneSteps(p, 0, 2), tuneSteps(p, 2, 4)})
}

func TestFineTuningAskedForAgainReturnsItsRecord(t *testing.T) {
	st, p := toyRun(t)
	b := process(t, st)
	before, _ := audited(t, st)
	got := call[FineTuneResult](b, b.tr.FineTuneSteps, FineTuneInput{Run: benchRun, Demos: p.curated.Demos, From: 2, To: 4})
	if after, _ := audited(t, st); after != before || got.Weights != p.sft || got.Loss <= 0 || got.Tokens == 0 {
		t.Fatalf("%+v with audit %+v, want the record of %+v and no step", got, after, p.sft)
	}
}

func TestThePreparedModelIsPreparedOnce(t *testing.T) {
	start, p := untuned(t)
	st := store.NewMemory()
	for key, body := range start {
		put(t, st, key, body)
	}
	in := FineTuneInput{Run: benchRun, Demos: p.curated.Demos}
	b := process(t, st)
	first := call[FineTuneResult](b, b.tr.PrepareModel, in)
	want := canonical(t, st)
	b = process(t, st)
	if again := call[FineTuneResult](b, b.tr.PrepareModel, in); again != first || first.Weights.Version != "sft-000000" {
		t.Fatalf("%+v, then %+v, want one first policy", first, again)
	}
	wantSame(t, "prepared again", canonical(t, st), want)
}

func TestTheOrderOfDemonstrationsIsAFunctionOfSeedAndStep(t *testing.T) {
	st, p := toyRun(t)
	in := FineTuneInput{Run: benchRun, Demos: p.curated.Demos}
	taken := func(rec Recipe, steps ...int64) map[int64]string {
		b := process(t, st)
		l, err := b.tr.lessons(t.Context(), rec, in)
		must(t, err)
		out := map[int64]string{}
		for _, step := range steps {
			d, err := l.batch(step).Digest()
			must(t, err)
			out[step] = d
		}
		return out
	}
	rec := toyRecipe(t)
	up, down := taken(rec, 1, 2, 3, 4, 5), taken(rec, 5, 3, 4, 2, 1, 3)
	wantSteps(t, up, down)
	if up[1] == up[2] || up[2] == up[3] {
		t.Fatal("steps of one epoch take the same demonstrations")
	}
	rec.Seed++
	if other := taken(rec, 1, 2, 3); other[1] == up[1] && other[2] == up[2] {
		t.Fatal("another seed takes the demonstrations in the same order")
	}
}

func wantSteps(t *testing.T, got, want map[int64]string) {
	t.Helper()
	for step := range want {
		if got[step] != want[step] {
			t.Fatalf("step %d takes other demonstrations when steps are asked for in another order", step)
		}
	}
}

func TestEveryDemonstrationIsTakenOnceAnEpoch(t *testing.T) {
	st, p := toyRun(t)
	b := process(t, st)
	l, err := b.tr.lessons(t.Context(), b.rec, FineTuneInput{Run: benchRun, Demos: p.curated.Demos})
	must(t, err)
	var taken []int
	for i := range 2 * len(l.sequences) {
		taken = append(taken, l.order.index(i))
	}
	first, second := taken[:len(l.sequences)], taken[len(l.sequences):]
	if slices.Equal(first, second) {
		t.Error("two epochs have one order")
	}
	for _, epoch := range [][]int{first, second} {
		slices.Sort(epoch)
		for i, x := range epoch {
			if i != x {
				t.Fatalf("an epoch takes %v, want each of %d once", epoch, len(epoch))
			}
		}
	}
	for _, s := range l.sequences {
		if s.Mask[0] != 0 || s.Mask[len(s.Mask)-1] != 1 {
			t.Fatalf("mask %v, want the prompt left out and the end of the last turn learnt", s.Mask)
		}
	}
}

func TestADemonstrationLongerThanTheModelIsTheUsersToMend(t *testing.T) {
	st, _ := toyRun(t)
	b := process(t, st)
	long := problem.Demo{Problem: "What?", Turns: []problem.Turn{{Role: problem.RoleAssistant, Text: strings.Repeat("1234567 ", 600)}}}
	demos, err := putLines(t.Context(), st, "long", "demonstrations.jsonl", []problem.Demo{long})
	must(t, err)
	_, err = try[FineTuneResult](b, b.tr.FineTuneSteps, FineTuneInput{Run: benchRun, Demos: demos, From: 4, To: 6})
	if text, ok := IsInputError(err); !ok || !strings.Contains(text, "demonstration 1 has") {
		t.Fatalf("error %v, want one that no retry mends and that names the demonstration", err)
	}
}
