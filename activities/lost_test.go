package activities

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/store"
)

// failing makes the sandbox fail on the calls of one sample.
func failing(w *writer, sample int) {
	w.run = func(c sandbox.Call) error {
		if strings.Contains(c.ID, fmt.Sprintf("/%d/turn ", sample)) {
			return errors.New("the pool burns")
		}
		return nil
	}
}

func TestTrap13ALostSampleDropsItsWholeGroupAndIsCounted(t *testing.T) {
	whole, in, counts, _ := sliced(t)
	st, _ := toyRun(t)
	sliceOf(t, st)
	b := process(t, st)
	w := writing(t, b, in.Weights.Version)
	failing(w, 5)
	refused(t, b, b.ro.Slice, in, "the pool burns") // the others are finished, and this one is left to another attempt
	c, _ := audited(t, st)
	records, err := store.ReadJournal(t.Context(), st, sliceJournal(in))
	must(t, err)
	if _, final := known(records); len(final) != sliceSize-1 || final[5] || c.Sampled != sliceSize {
		t.Fatalf("finished samples %v, want all but 5; audit %+v", final, c)
	}

	w.run = func(sandbox.Call) error { return errors.New("the pool burns") } // nothing runs at all: nothing may be given up
	b.ro.LoseFrom = 1
	refused(t, b, b.ro.Slice, in, "the pool burns")

	failing(w, 5)
	got := call[SliceResult](b, b.ro.Slice, in)
	if got.Lost != 1 || got.Unknown != counts.Unknown+1 || got.Samples != sliceSize {
		t.Fatalf("%+v, want one sample lost of %+v", got, counts)
	}
	w.run = nil // a lost sample stays lost
	if again := call[SliceResult](b, b.ro.Slice, in); again != got {
		t.Fatalf("%+v after the sandbox came back, want %+v", again, got)
	}

	g, err := readGroup(t.Context(), st, in, in.Samples)
	must(t, err)
	whole2, err := readGroup(t.Context(), whole, in, in.Samples)
	must(t, err)
	for i := range g {
		mine, theirs := mustEncode(t, &g[i]), mustEncode(t, &whole2[i])
		if same := mine == theirs; same == (i == 5) {
			t.Errorf("sample %d is as undisturbed: %v", i, same)
		}
	}
	alg, err := b.rec.RL.Parameters()
	must(t, err)
	ch := newChooser(b.rec, alg, SelectInput{Run: in.Run, Stage: in.Stage, Step: 1, Prompts: 2, Weights: in.Weights})
	ch.read(0, g)
	ch.read(1, whole2)
	if again, err := ch.choose(); err != nil || again {
		t.Fatal(err)
	}
	if ch.out.LostGroups != 1 || ch.out.UnknownGroups != 1 || ch.out.Groups != 2 {
		t.Errorf("figures %+v, want one of two groups dropped as lost", ch.out)
	}
	chosen := ch.parts()[0].Batch.Sequences
	for _, s := range chosen {
		if s.Ordinal < ch.stage.Samples {
			t.Errorf("sequence %d of the broken group trains", s.Ordinal)
		}
	}
	if len(chosen) == 0 {
		t.Error("the whole group does not train")
	}
}

func TestAFailingSampleLetsTheOthersFinish(t *testing.T) {
	whole, in, counts, _ := sliced(t)
	st, _ := toyRun(t)
	sliceOf(t, st)
	b := process(t, st)
	w := writing(t, b, in.Weights.Version)
	var mu sync.Mutex
	failures := 0
	w.before = func(a philox.Address) error {
		mu.Lock()
		defer mu.Unlock()
		if a.Sample == 3 && a.Turn == 1 && failures < 1 {
			failures++
			return errors.New("the engine stumbles")
		}
		return nil
	}
	if got := call[SliceResult](b, b.ro.Slice, in); got != counts || failures != 1 {
		t.Fatalf("%+v after %d failures, want %+v after one", got, failures, counts)
	}
	if w.asked["3/0"] != 1 || w.asked["3/1"] != 2 {
		t.Errorf("turns of sample 3 were asked for %v times, want the failed one alone twice", w.asked)
	}
	wantSame(t, "after a stumble", canonical(t, st), canonical(t, whole))
}

func mustEncode(t *testing.T, tr *agent.Trajectory) string {
	t.Helper()
	body, err := tr.Canonical()
	must(t, err)
	return string(body)
}

func TestASampleIsNotLostToASandboxThatComesBack(t *testing.T) {
	whole, in, counts, _ := sliced(t)
	for _, failures := range []int{1, 2, 3, 4} { // of two runs and the proofs behind them
		st, _ := toyRun(t)
		sliceOf(t, st)
		b := process(t, st)
		b.ro.LoseFrom = 1
		w := writing(t, b, in.Weights.Version)
		var mu sync.Mutex
		n := 0
		w.run = func(c sandbox.Call) error {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(c.ID, "/5/turn ") && n < failures {
				n++
				return errors.New("the pool burns")
			}
			return nil
		}
		if got := call[SliceResult](b, b.ro.Slice, in); got != counts || n != failures {
			t.Fatalf("%+v after %d failures, want %+v after %d", got, n, counts, failures)
		}
		wantSame(t, fmt.Sprintf("after %d failures", failures), canonical(t, st), canonical(t, whole))
	}
}
