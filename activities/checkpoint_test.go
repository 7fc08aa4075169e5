package activities

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/store"
)

// spoil flips the last byte of a checkpoint's state.
func spoil(t *testing.T, st store.Store, stage string, step string) {
	t.Helper()
	entries, err := st.List(t.Context(), store.CheckpointsPrefix(benchRun, stage)+step+"/data/")
	must(t, err)
	if len(entries) != 1 {
		t.Fatalf("checkpoint %s of %s has %d objects, want 1", step, stage, len(entries))
	}
	body := get(t, st, entries[0].Key)
	body[len(body)-1] ^= 1
	put(t, st, entries[0].Key, body)
}

// without is what a run decided, but for the keys that hold part.
func without(all map[string]string, part string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.Contains(key, part) })
	return out
}

func TestACorruptCheckpointMeansAnOlderOneAndALongerReplay(t *testing.T) {
	want, in, _ := undisturbed(t, 4)
	st, _ := toyRun(t)
	rounds(t, st, 4)
	b := process(t, st)
	for _, x := range in[:3] {
		trainOn(b, x)
	}
	b.checkpoint(2)
	spoil(t, st, "one", "00000002")
	b = process(t, st)
	trainOn(b, in[3])
	b.checkpoint(4)
	c, _ := audited(t, st)
	if c.Replayed != 3 || c.StepsAppliedTwice != 0 {
		t.Fatalf("audit %+v, want steps 1 to 3 replayed", c)
	}
	const checkpoints = "one/checkpoints/"
	wantSame(t, "past a corrupt checkpoint", without(canonical(t, st), checkpoints), without(canonical(t, want), checkpoints))
	for key, d := range canonical(t, want) {
		if strings.Contains(key, checkpoints+"00000004/data") && canonical(t, st)[key] != d {
			t.Fatalf("%s differs", key)
		}
	}
}

func TestACheckpointNamesTheRecipeThatItsStateWasTrainedBy(t *testing.T) {
	st, _ := toyRun(t)
	in := rounds(t, st, 1)
	all, err := store.Checkpoints(t.Context(), st, store.CheckpointsPrefix(benchRun, "one"))
	must(t, err)
	body := get(t, st, store.RecipeKey(benchRun))
	if got, want := all[0].Meta["recipe_digest"], digest(body); len(all) != 1 || got != want {
		t.Fatalf("%d checkpoints, the first of recipe %q, want one of %s", len(all), got, want)
	}
	put(t, st, store.RecipeKey(benchRun), bytes.Replace(body, []byte(`"learning_rate":0.01`), []byte(`"learning_rate":0.02`), 1))
	b := process(t, st)
	_, err = try[TrainResult](b, b.tr.TrainStep, in[0])
	if text, ok := IsInputError(err); !ok || !strings.Contains(text, "trained by the recipe of digest "+digest(body)) {
		t.Fatalf("under another recipe: error %v, want one that no retry mends", err)
	}
}

func TestOnlyCorruptCheckpointsAreAnError(t *testing.T) {
	st, _ := toyRun(t)
	in := rounds(t, st, 1)
	spoil(t, st, "one", "00000000")
	b := process(t, st)
	refused(t, b, b.tr.TrainStep, in[0], store.ErrCorrupt.Error())
}

func TestACheckpointWithoutItsSnapshotIsMadeAgain(t *testing.T) {
	want, in, _ := undisturbed(t, 4)
	for name, save := range map[string]func(*bench, int64){
		"by the trainer itself": func(b *bench, step int64) { clear(b.tr.held[benchRun].snapshots); b.checkpoint(step) },
		"by another process":    func(b *bench, step int64) { process(t, b.st).checkpoint(step) },
		"by a trainer that was elsewhere": func(b *bench, step int64) {
			b.tr.held[benchRun].state = nil
			clear(b.tr.held[benchRun].snapshots)
			b.checkpoint(step)
		},
	} {
		st, _ := toyRun(t)
		rounds(t, st, 4)
		b := process(t, st)
		for i, x := range in {
			trainOn(b, x)
			if i > 0 && i < 3 { // the second step's checkpoint is late: the third is applied before it
				continue
			}
			if i == 3 {
				save(b, 2)
				save(b, 4)
			}
		}
		wantSame(t, name, canonical(t, st), canonical(t, want))
	}
}

func TestAStateInHandIsCheckpointedWithoutAReplay(t *testing.T) {
	st, _ := toyRun(t)
	in := rounds(t, st, 2)
	b := process(t, st)
	trainOn(b, in[0]) // step 1 is due for no checkpoint: a stage that its user stops here saves it
	b.checkpoint(1)
	if c, _ := audited(t, st); c.Replayed != 0 {
		t.Fatalf("audit %+v, want no replay", c)
	}
	trainOn(b, in[1])
	if n := len(b.tr.held[benchRun].snapshots); n != 1 {
		t.Fatalf("%d states await their checkpoint after step 2, want 1", n)
	}
	b.checkpoint(2)
	if n := len(b.tr.held[benchRun].snapshots); n != 0 {
		t.Fatalf("%d states are kept in memory after their checkpoint", n)
	}
	if got := checkpointSteps(t, st, "one"); !slices.Equal(got, []int64{1, 2}) {
		t.Fatalf("checkpoints of steps %v, want 1 and 2", got)
	}
}

func checkpointSteps(t *testing.T, st store.Store, stage string) (steps []int64) {
	t.Helper()
	all, err := store.Checkpoints(t.Context(), st, store.CheckpointsPrefix(benchRun, stage))
	must(t, err)
	for _, c := range all {
		steps = append(steps, c.Step)
	}
	return steps
}

func TestADroppedVersionIsPublishedAgainWithItsDigest(t *testing.T) {
	st, _, out := undisturbed(t, 4)
	b := process(t, st)
	policies := &Policies{Runs: b.tr.Runs, Store: st}
	dropped := out[0].Weights
	if _, err := policies.Load(t.Context(), benchRun, dropped); !isNotFound(err) {
		t.Fatalf("weights of step 1 after step 4: %v, want them dropped", err)
	}
	// the checkpoint before step 1 was dropped too: the oldest one kept is that of step 2
	refused(t, b, b.tr.PublishWeights, beginOf("one", 0, dropped, 0), "no readable checkpoint of a step up to 1")

	for _, step := range []int{2, 3} { // from its checkpoint, and by a replay from it
		w := out[step-1].Weights
		for _, key := range weightsKeys(t, st, w) {
			must(t, st.Delete(t.Context(), key))
		}
		_, err := try[any](b, b.tr.PublishWeights, beginOf("one", 0, w, 0))
		must(t, err)
		if _, err := policies.Load(t.Context(), benchRun, w); err != nil {
			t.Fatalf("version %s was published again: %v", w.Version, err)
		}
	}
}

func weightsKeys(t *testing.T, st store.Store, w Weights) (keys []string) {
	t.Helper()
	entries, err := st.List(t.Context(), store.WeightsPrefix(benchRun, w.Stage)+w.Version+"/")
	must(t, err)
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys
}

func TestWeightsPublishedAgainAreDroppedWithTheNextCheckpoint(t *testing.T) {
	st, _, out := undisturbed(t, 4)
	want := canonical(t, st)
	b := process(t, st)
	_, err := try[any](b, b.tr.PublishWeights, beginOf("one", 0, out[1].Weights, 0))
	must(t, err)
	if len(canonical(t, st)) == len(want) {
		t.Fatal("nothing was published")
	}
	b.checkpoint(4)
	wantSame(t, "after the next checkpoint", canonical(t, st), want)
}

func TestWeightsOfAnotherDigestAreNotPublished(t *testing.T) {
	st, _, out := undisturbed(t, 2)
	w := out[0].Weights
	w.Digest = out[1].Weights.Digest
	b := process(t, st)
	_, err := try[any](b, b.tr.PublishWeights, beginOf("one", 0, w, 0))
	if _, ok := IsInputError(err); !ok {
		t.Fatalf("error %v, want one that no retry mends", err)
	}
}

func TestTrainingGoesOnWhileACheckpointIsWritten(t *testing.T) {
	want, in, _ := undisturbed(t, 4)
	st, _ := toyRun(t)
	rounds(t, st, 4)
	b := process(t, st)
	trainOn(b, in[0])
	trainOn(b, in[1])
	saved := make(chan error, 1)
	go func() { _, err := try[any](b, b.tr.Checkpoint, checkpointOf(2)); saved <- err }()
	trainOn(b, in[2])
	trainOn(b, in[3])
	must(t, <-saved)
	b.checkpoint(4)
	wantSame(t, "a checkpoint beside training", canonical(t, st), canonical(t, want))
	if c, _ := audited(t, st); c.Replayed != 0 || c.StepsAppliedTwice != 0 {
		t.Fatalf("audit %+v, want no replay", c)
	}
}

func TestAVersionHasOneDigestForEver(t *testing.T) {
	st, _ := toyRun(t)
	in := rounds(t, st, 1)
	blobs := []store.Blob{{Name: "model.safetensors", Data: []byte("other bits")}}
	_, _, err := store.PublishWeights(t.Context(), st, benchRun, "one", "one-000001", blobs, map[string]string{"digest": "another"})
	must(t, err)
	b := process(t, st)
	_, err = try[TrainResult](b, b.tr.TrainStep, in[0])
	if text, ok := IsInputError(err); !ok || !strings.Contains(text, "published as another") {
		t.Fatalf("error %v, want one that no retry mends", err)
	}
}
