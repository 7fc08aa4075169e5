package activities

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

const sliceSize = 8

func sliceOf(t *testing.T, st store.Store) SliceInput {
	t.Helper()
	set, _ := sevens(t, st, 4)
	return SliceInput{Run: benchRun, Stage: "one", Purpose: PurposeRollout, Round: store.IterationGroup(0), Samples: sliceSize,
		Problems: set, Weights: toy.first, Tokens: 400, Turns: 3, Temperature: 1}
}

// sliced samples the slice undisturbed.
func sliced(t *testing.T) (*store.Memory, SliceInput, SliceResult, []store.Record) {
	t.Helper()
	st, _ := toyRun(t)
	in := sliceOf(t, st)
	b := process(t, st)
	writing(t, b, in.Weights.Version)
	got := call[SliceResult](b, b.ro.Slice, in)
	records, err := store.ReadJournal(t.Context(), st, sliceJournal(in))
	must(t, err)
	return st, in, got, records
}

func TestASliceCountsWhatItSampled(t *testing.T) {
	st, _, got, _ := sliced(t)
	tokens := got.Tokens
	got.Tokens = 0
	if want := (SliceResult{Samples: 8, Correct: 4, Calls: 10, CallErrors: 2, Truncated: 2}); got != want || tokens == 0 {
		t.Fatalf("%+v with %d tokens, want %+v", got, tokens, want)
	}
	c, events := audited(t, st)
	if c.Sampled != sliceSize || c.TrajectoriesRegenerated != 0 {
		t.Fatalf("audit %+v, want %d trajectories sampled", c, sliceSize)
	}
	if s := events[len(events)-1].Sampled; s == nil || s.Stage != "one" || s.Purpose != PurposeRollout || s.Sample != 7 || s.Attempt != 1 {
		t.Fatalf("audit says %+v, want sample 7 of the first attempt", s)
	}
}

// journal writes records in segments of a size.
func journal(t *testing.T, st store.Store, prefix string, records []store.Record, segment int) {
	t.Helper()
	j, _, err := store.OpenJournal(t.Context(), st, prefix)
	must(t, err)
	for i, r := range records {
		must(t, j.Append(r))
		if (i+1)%segment == 0 {
			must(t, j.Flush(t.Context()))
		}
	}
	must(t, j.Close(t.Context()))
}

// known are the "sample/turn" of records, and their finished samples.
func known(records []store.Record) (turns map[string]bool, final map[int]bool) {
	turns, final = map[string]bool{}, map[int]bool{}
	next := map[int]int{}
	for _, r := range records {
		kind, digits, _ := strings.Cut(r.Key, "/")
		sample, _ := strconv.Atoi(digits)
		if kind == "final" {
			final[sample] = true
			continue
		}
		turns[fmt.Sprintf("%d/%d", sample, next[sample])] = true
		next[sample]++
	}
	return turns, final
}

func TestASliceGoesOnAfterAnyTurnToTheSameTrajectories(t *testing.T) {
	whole, in, counts, records := sliced(t)
	want := canonical(t, whole)
	for kept := range len(records) + 1 {
		st, _ := toyRun(t)
		sliceOf(t, st)
		journal(t, st, sliceJournal(in), records[:kept], 1+kept%4)
		b := process(t, st)
		w := writing(t, b, in.Weights.Version)
		if got := call[SliceResult](b, b.ro.Slice, in); got != counts {
			t.Fatalf("after %d records: %+v, want %+v", kept, got, counts)
		}
		wantSame(t, fmt.Sprintf("after %d records", kept), canonical(t, st), want)
		turns, final := known(records[:kept])
		for turn := range turns {
			if w.asked[turn] != 0 {
				t.Fatalf("after %d records: turn %s was sampled again", kept, turn)
			}
		}
		if c, _ := audited(t, st); c.Sampled != sliceSize-len(final) || c.TrajectoriesRegenerated != 0 {
			t.Fatalf("after %d records: audit %+v, want the %d unfinished samples", kept, c, sliceSize-len(final))
		}
	}
}

func TestAFaultAtAnyWriteOfASliceChangesNothing(t *testing.T) {
	whole, in, _, _ := sliced(t)
	st, _ := toyRun(t)
	sliceOf(t, st)
	everyFault(t, contents(t, st), canonical(t, whole), []func(*bench) error{func(b *bench) error {
		writing(t, b, in.Weights.Version)
		_, err := try[SliceResult](b, b.ro.Slice, in)
		return err
	}})
}

func TestAFinishedSliceNeedsNeitherEngineNorWeights(t *testing.T) {
	st, in, counts, _ := sliced(t)
	for _, key := range weightsKeys(t, st, in.Weights) {
		must(t, st.Delete(t.Context(), key))
	}
	before, _ := audited(t, st)
	b := process(t, st)
	b.ro.Engines, b.ro.Pools = nil, nil
	if got := call[SliceResult](b, b.ro.Slice, in); got != counts {
		t.Fatalf("%+v, want %+v", got, counts)
	}
	if after, _ := audited(t, st); after != before {
		t.Fatalf("audit %+v, want %+v", after, before)
	}
}

func TestTwoAttemptsAtOnceEndInOneContent(t *testing.T) {
	whole, in, counts, _ := sliced(t)
	st, _ := toyRun(t)
	sliceOf(t, st)
	zombie, heir := process(t, st), process(t, st)
	writing(t, heir, in.Weights.Version)
	var once sync.Once
	writing(t, zombie, in.Weights.Version).before = func(a philox.Address) error {
		if a.Turn == 1 { // the zombie hangs here while its heir does all the work, whatever it wrote until now
			once.Do(func() { retried(t, heir, in) })
		}
		return nil
	}
	refused(t, zombie, zombie.ro.Slice, in, store.ErrSuperseded.Error())
	if got := call[SliceResult](zombie, zombie.ro.Slice, in); got != counts {
		t.Fatalf("the zombie's next attempt counts %+v, want the journal's %+v", got, counts)
	}
	wantSame(t, "two attempts", canonical(t, st), canonical(t, whole))
	if c, _ := audited(t, st); c.TrajectoriesRegenerated != 0 {
		t.Fatalf("audit %+v", c)
	}
}

// retried samples until no other attempt is faster, as the server does.
func retried(t *testing.T, b *bench, in SliceInput) {
	for range 20 {
		_, err := try[SliceResult](b, b.ro.Slice, in)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), store.ErrSuperseded.Error()) {
			t.Error(err)
			return
		}
	}
	t.Error("superseded 20 times")
}

func TestABrokenSandboxIsNoMistakeOfTheModel(t *testing.T) {
	whole, in, counts, _ := sliced(t)
	st, _ := toyRun(t)
	sliceOf(t, st)
	b := process(t, st)
	w := writing(t, b, in.Weights.Version)
	w.run = func(c sandbox.Call) error { return errors.New("the pool burns") }
	refused(t, b, b.ro.Slice, in, "the pool burns")
	w.run = nil
	if got := call[SliceResult](b, b.ro.Slice, in); got != counts {
		t.Fatalf("%+v, want %+v", got, counts)
	}
	wantSame(t, "after a broken sandbox", canonical(t, st), canonical(t, whole))
}

func TestTrap25TwoFinalRecordsOfASampleAreAnError(t *testing.T) {
	st, in, _, records := sliced(t)
	journal(t, st, sliceJournal(in), records[len(records)-1:], 1)
	b := process(t, st)
	refused(t, b, b.ro.Slice, in, "two final records")
	if _, err := Canonical(t.Context(), st, benchRun); err == nil || !strings.Contains(err.Error(), "two final records") {
		t.Fatalf("canonical content: error %v, want one of two final records", err)
	}
}

func TestWeightsThatAreNotPublishedAreAFailureOfTheirOwn(t *testing.T) {
	st, _ := toyRun(t)
	in := sliceOf(t, st)
	for _, key := range weightsKeys(t, st, in.Weights) {
		must(t, st.Delete(t.Context(), key))
	}
	b := process(t, st)
	refused(t, b, b.ro.Slice, in, "type: "+ErrMissingWeights)
	in.Problems.Key += "-gone" // which no trainer can publish
	if _, err := b.env.ExecuteActivity(b.ro.Slice, in); err == nil || strings.Contains(err.Error(), ErrMissingWeights) {
		t.Fatalf("error %v, want one of a missing set", err)
	}
}

func TestTheOnPolicyRatioOfASliceIsExactlyOne(t *testing.T) {
	st, _ := toyRun(t)
	in := sliceOf(t, st)
	in.Samples, in.Tokens = 4, 40
	b := process(t, st)
	b.ro.Pools = &writer{} // the policy knows nothing, so it calls nothing
	call[SliceResult](b, b.ro.Slice, in)
	g, err := readGroup(t.Context(), st, in, in.Samples)
	must(t, err)
	chosen := batch{Stage: "one", Step: 1}
	for i, x := range g {
		s := train.Sequence{Ordinal: i, IDs: x.IDs, Mask: x.Mask, LogProbs: x.LogProbs, Advantage: float32(1 - 2*(i%2))}
		chosen.Batch.Sequences = append(chosen.Batch.Sequences, s)
	}
	m := trainOn(b, putBatch(t, st, chosen)).Metrics
	if m.RatioMax != 1 || m.Tokens == 0 || m.GradNorm == 0 {
		t.Fatalf("largest ratio %v over %d tokens, gradient norm %v; want exactly 1", m.RatioMax, m.Tokens, m.GradNorm)
	}
}
