package activities

import (
	"slices"
	"testing"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

func stateOf(t *testing.T, b *bench, stage string, step int64) *train.State {
	t.Helper()
	s, err := b.tr.loadCheckpoint(t.Context(), b.rec, benchRun, stage, step)
	must(t, err)
	return s
}

func hasMoments(s *train.State) bool {
	return slices.ContainsFunc(s.M, func(m model.Tensor) bool { return slices.ContainsFunc(m.Data, func(x float32) bool { return x != 0 }) })
}

func TestAStageBeginsOnce(t *testing.T) {
	st, _, out := undisturbed(t, 4)
	b := process(t, st)
	in := beginOf("two", 1, out[3].Weights, 4)
	first := call[Weights](b, b.tr.BeginStage, in)
	want := canonical(t, st)
	for range 2 {
		if again := call[Weights](b, b.tr.BeginStage, in); again != first {
			t.Fatalf("the stage begins again with %+v, want %+v", again, first)
		}
		b = process(t, st)
	}
	wantSame(t, "begun again", canonical(t, st), want)
	if first != (Weights{Stage: "two", Version: "two-000004", Digest: out[3].Weights.Digest}) {
		t.Fatalf("stage two begins with %+v, want the weights that stage one ended with", first)
	}
}

func TestMomentsAreResetOnlyWhereAsked(t *testing.T) {
	begun, p := toyRun(t)
	st, _, steps := undisturbed(t, 4)
	b, out := process(t, st), steps[3].Weights
	if s := stateOf(t, process(t, begun), "one", 0); hasMoments(s) || s.Updates != 0 || s.WeightsDigest() != p.sft.Digest {
		t.Fatal("stage one, after fine-tuning, has moments of another loss")
	}
	last := stateOf(t, b, "one", 4)
	if !hasMoments(last) || last.Updates != 4 {
		t.Fatalf("stage one ended with moments %v and %d updates, want 4", hasMoments(last), last.Updates)
	}
	for _, c := range []struct {
		stage string
		index int
		reset bool
	}{{"two", 1, true}, {"three", 2, false}} {
		call[Weights](b, b.tr.BeginStage, beginOf(c.stage, c.index, out, 6))
		s := stateOf(t, b, c.stage, 6)
		if hasMoments(s) == c.reset || (s.Updates == 0) != c.reset || s.AppliedStep != 6 || s.WeightsDigest() != out.Digest {
			t.Errorf("stage %s: moments %v, %d updates, %d steps applied; want a reset: %v", c.stage, hasMoments(s), s.Updates, s.AppliedStep, c.reset)
		}
	}
}

func TestAStageTakesOverOneThatEndedEarly(t *testing.T) {
	st, _ := toyRun(t)
	in := rounds(t, st, 1)
	b := process(t, st)
	ended := trainOn(b, in[0]).Weights
	b.checkpoint(1)
	w := call[Weights](b, b.tr.BeginStage, beginOf("two", 1, ended, 4))
	if w.Version != "two-000004" || w.Digest != ended.Digest {
		t.Fatalf("stage two begins with %+v, want the weights of %+v as its step 4", w, ended)
	}
	next := putBatch(t, st, batch{Stage: "two", Step: 5, Batch: toyBatch(7)})
	got := trainOn(b, next)
	must(t, st.Delete(t.Context(), store.MetricsKey(benchRun, "two", 0, 0)))
	if again := trainOn(process(t, st), next); again != got || got.Weights.Version != "two-000005" {
		t.Fatalf("the first step gives %+v and %+v, want one result for step 5", got, again)
	}
}

func TestAStageBeginsPastACorruptLastCheckpoint(t *testing.T) {
	st, _, out := undisturbed(t, 4)
	spoil(t, st, "one", "00000004")
	b := process(t, st)
	if w := call[Weights](b, b.tr.BeginStage, beginOf("two", 1, out[3].Weights, 4)); w.Digest != out[3].Weights.Digest {
		t.Fatalf("stage two begins with %+v, want the weights of %+v", w, out[3].Weights)
	}
}

func TestAStageOfOtherWeightsIsRefused(t *testing.T) {
	st, _, out := undisturbed(t, 2)
	b := process(t, st)
	w := out[1].Weights
	w.Digest = out[0].Weights.Digest
	_, err := try[Weights](b, b.tr.BeginStage, beginOf("two", 1, w, 4))
	if _, ok := IsInputError(err); !ok {
		t.Fatalf("error %v, want one that no retry mends", err)
	}
	w.Version = "two-000002"
	refused(t, b, b.tr.BeginStage, beginOf("two", 1, w, 4), `want "one-" and a number`)
}
