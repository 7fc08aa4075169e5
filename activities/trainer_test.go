package activities

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/store"
)

func trainOn(b *bench, in TrainInput) TrainResult { return call[TrainResult](b, b.tr.TrainStep, in) }

// undisturbed applies the first n steps of stage one, with their checkpoints, in one process.
func undisturbed(t *testing.T, n int) (*store.Memory, []TrainInput, []TrainResult) {
	t.Helper()
	st, _ := toyRun(t)
	in := rounds(t, st, n)
	b := process(t, st)
	var out []TrainResult
	for _, x := range in {
		out = append(out, trainOn(b, x))
		if x.Step%2 == 0 {
			b.checkpoint(x.Step)
		}
	}
	return st, in, out
}

func TestAStepIsAppliedExactlyOnce(t *testing.T) {
	st, p := toyRun(t)
	in := rounds(t, st, 1)
	b := process(t, st)
	before, _ := audited(t, st)
	first := trainOn(b, in[0])
	for range 2 {
		if again := trainOn(b, in[0]); again != first {
			t.Fatalf("the second time gives %+v, want %+v", again, first)
		}
		b = process(t, st)
	}
	after, events := audited(t, st)
	if n := after.Applied - before.Applied; n != 1 || after.StepsAppliedTwice != 0 || after.Replayed != 0 {
		t.Fatalf("applied %d times, audit %+v; want once", n, after)
	}
	if a := events[len(events)-1].Applied; a.Step != 1 || a.InputAppliedStep != 0 || a.Stage != "one" {
		t.Fatalf("audit says %+v, want step 1 on a state of step 0", a)
	}
	if first.Weights.Digest == p.first.Digest || first.Metrics.GradNorm == 0 || first.Metrics.WeightsDigest != first.Weights.Digest {
		t.Fatalf("the step changed nothing: %+v", first)
	}
}

func TestPublishedWeightsAreThoseOfTheStep(t *testing.T) {
	st, _, out := undisturbed(t, 2)
	b := process(t, st)
	for _, r := range out {
		if _, err := (&Policies{Runs: b.tr.Runs, Store: st}).Load(t.Context(), benchRun, r.Weights); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALostTrainerReplaysToTheSameBits(t *testing.T) {
	want, in, _ := undisturbed(t, 4)
	for lost := range in { // the trainer dies before this step; no checkpoint is newer than the stage's first
		st, _ := toyRun(t)
		rounds(t, st, 4)
		b := process(t, st)
		for i, x := range in {
			if i == lost {
				b = process(t, st)
			}
			trainOn(b, x)
		}
		for _, step := range []int64{2, 4} {
			b.checkpoint(step)
		}
		wantSame(t, "a trainer that was lost", canonical(t, st), canonical(t, want))
		if c, _ := audited(t, st); c.StepsAppliedTwice != 0 || c.Replayed < lost {
			t.Fatalf("lost before step %d: audit %+v, want %d replays and nothing twice", lost+1, c, lost)
		}
	}
}

func TestAReplayBeginsAtTheNewestCheckpoint(t *testing.T) {
	st, in, _ := undisturbed(t, 3)
	before, _ := audited(t, st)
	b := process(t, st)
	next := putBatch(t, st, batch{Stage: "one", Iteration: 3, Step: 4, Batch: toyBatch(3)})
	trainOn(b, next)
	after, events := audited(t, st)
	if after.Replayed-before.Replayed != 1 || after.Applied-before.Applied != 2 {
		t.Fatalf("audit went from %+v to %+v, want a replay of step %d alone", before, after, in[2].Step)
	}
	if a := events[len(events)-2].Applied; !a.Replay || a.Step != 3 || a.InputAppliedStep != 2 {
		t.Fatalf("audit says %+v, want a replay of step 3", a)
	}
}

func TestAReplayThatDiffersFromItsRecordIsRefused(t *testing.T) {
	st, _, _ := undisturbed(t, 1)
	key := store.MetricsKey(benchRun, "one", 0, 0)
	var m StepMetrics
	must(t, json.Unmarshal(get(t, st, key), &m))
	m.Loss += 1e-9
	body, err := encodeIndented(m)
	must(t, err)
	put(t, st, key, body)
	next := putBatch(t, st, batch{Stage: "one", Iteration: 1, Step: 2, Batch: toyBatch(1)})
	b := process(t, st)
	_, err = try[TrainResult](b, b.tr.TrainStep, next)
	if text, ok := IsInputError(err); !ok || !strings.Contains(text, "metrics/000000.json") {
		t.Fatalf("error %v, want one that no retry mends and that names the record", err)
	}
	if _, _, err := st.Get(t.Context(), store.MetricsKey(benchRun, "one", 1, 0)); !isNotFound(err) {
		t.Fatalf("step 2 is recorded although the replay before it failed (%v)", err)
	}
}

// taker takes a stage's lease over when a batch is read.
type taker struct {
	store.Store
	by    *Trainer
	armed bool
}

func (s *taker) Get(ctx context.Context, key string) ([]byte, store.ETag, error) {
	if s.armed && strings.Contains(key, "/batches/") {
		s.armed = false
		if _, err := s.by.lease(ctx, benchRun, "one"); err != nil {
			return nil, "", err
		}
	}
	return s.Store.Get(ctx, key)
}

func TestAStaleEpochIsRefusedAndReloads(t *testing.T) {
	want, in, _ := undisturbed(t, 2)
	st, _ := toyRun(t)
	rounds(t, st, 2)
	other := process(t, st)
	s := &taker{Store: st, by: other.tr}
	b := process(t, s)
	trainOn(b, in[0])
	s.armed = true
	before, _ := audited(t, st)
	refused(t, b, b.tr.TrainStep, in[1], errStaleEpoch.Error())
	if after, _ := audited(t, st); after != before {
		t.Fatalf("a refused trainer went on: audit %+v, want %+v", after, before)
	}
	trainOn(b, in[1])
	b.checkpoint(2)
	wantSame(t, "after a refusal", canonical(t, st), canonical(t, want))
}

func TestATrainerThatWasOvertakenGoesOnFromTheStore(t *testing.T) {
	want, in, _ := undisturbed(t, 4)
	st, _ := toyRun(t)
	rounds(t, st, 4)
	both := []*bench{process(t, st), process(t, st)}
	for i, x := range in {
		trainOn(both[i%2], x)
		if x.Step%2 == 0 {
			both[0].checkpoint(x.Step)
		}
	}
	wantSame(t, "two trainers in turn", canonical(t, st), canonical(t, want))
	if c, _ := audited(t, st); c.StepsAppliedTwice != 0 {
		t.Fatalf("audit %+v", c)
	}
}

func TestStepsOutOfOrderAreRefusedAndHurtNothing(t *testing.T) {
	want, in, _ := undisturbed(t, 2)
	st, _ := toyRun(t)
	rounds(t, st, 2)
	b := process(t, st)
	trainOn(b, in[0])
	ahead := TrainInput{Run: benchRun, Stage: "one", Iteration: 3, Step: 4, Batch: in[1].Batch}
	refused(t, b, b.tr.TrainStep, ahead, "replay: get runs/learn/one/metrics/000001.json") // step 2 was never applied
	ahead.Iteration, ahead.Step = 4, 6
	must(t, st.Delete(t.Context(), in[1].Batch.Key))
	refused(t, b, b.tr.TrainStep, ahead, "step 2 of learn/one has no recorded batch")
	rounds(t, st, 2)
	wrong := in[0]
	wrong.Step = 2
	refused(t, b, b.tr.TrainStep, wrong, "is recorded as step 1, asked for as step 2")
	trainOn(b, in[1])
	b.checkpoint(2)
	wantSame(t, "after steps out of order", canonical(t, st), canonical(t, want))
}

func TestABatchOfAnotherDigestIsRefused(t *testing.T) {
	st, _ := toyRun(t)
	in := rounds(t, st, 1)
	in[0].Batch.Digest = digest(nil)
	b := process(t, st)
	refused(t, b, b.tr.TrainStep, in[0], "has digest")
}

func TestTrap11AGradientThatIsNotFiniteIsASkippedStep(t *testing.T) {
	st, p := toyRun(t)
	broken := batch{Stage: "one", Step: 1, Batch: toyBatch(0)}
	for i := range broken.Batch.Sequences {
		broken.Batch.Sequences[i].Advantage *= 3e38
	}
	in := []TrainInput{putBatch(t, st, broken), putBatch(t, st, batch{Stage: "one", Iteration: 1, Step: 2, Batch: toyBatch(1)})}
	b := process(t, st)
	got := trainOn(b, in[0])
	if got.Metrics.Skipped == "" || got.Weights.Digest != p.first.Digest || got.Weights.Version != "one-000001" {
		t.Fatalf("%+v, want a skipped step with the weights before it", got)
	}
	next := trainOn(b, in[1])
	if next.Metrics.Skipped != "" || next.Weights.Digest == p.first.Digest {
		t.Fatalf("%+v, want the step after a skipped one to count", next)
	}
	must(t, st.Delete(t.Context(), store.MetricsKey(benchRun, "one", 1, 0)))
	if again := trainOn(process(t, st), in[1]); again != next {
		t.Fatalf("replayed over a skipped step: %+v, want %+v", again, next)
	}
}

func TestAFaultAtAnyWriteOfTrainingChangesNothing(t *testing.T) {
	st, _ := toyRun(t)
	in := rounds(t, st, 4)
	start := contents(t, st)
	var script []func(*bench) error
	step := func(x TrainInput) func(*bench) error {
		return func(b *bench) error { _, err := try[TrainResult](b, b.tr.TrainStep, x); return err }
	}
	for _, x := range in {
		script = append(script, step(x))
		if x.Step%2 == 0 {
			script = append(script, func(b *bench) error { _, err := try[any](b, b.tr.Checkpoint, checkpointOf(x.Step)); return err })
		}
	}
	want, _, out := undisturbed(t, 4)
	last := out[3].Weights
	begin := func(b *bench) error {
		_, err := try[Weights](b, b.tr.BeginStage, beginOf("two", 1, last, 4))
		return err
	}
	must(t, begin(process(t, want)))
	everyFault(t, start, canonical(t, want), append(script, begin))
}

func TestARecipeThatRecomputesActivationsGivesTheSameBits(t *testing.T) {
	st, _ := toyRun(t)
	in := rounds(t, st, 1)
	want := trainOn(process(t, st), in[0])
	st, _ = toyRun(t)
	rounds(t, st, 1)
	rec := toyRecipe(t)
	rec.Recompute = true
	retold(t, st, rec)
	b := process(t, st)
	if got := trainOn(b, in[0]); got != want || !b.tr.held[benchRun].state.Plan.Recompute {
		t.Fatalf("%+v, want %+v by a trainer that recomputes", got, want)
	}
}

func TestAStageMayHaveALearningRateOfItsOwn(t *testing.T) {
	rec := toyRecipe(t)
	for stage, want := range map[string]float64{"one": 0.01, "two": 0.01, "three": 0.002} {
		if got := optimizer(rec, stage).LR; got != want {
			t.Errorf("stage %s learns at %v, want %v", stage, got, want)
		}
	}
}
