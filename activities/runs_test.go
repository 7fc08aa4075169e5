package activities

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/model"
)

func TestARunOfOtherBitsIsRefused(t *testing.T) {
	st, p := toyRun(t)
	in := rounds(t, st, 1)
	b := process(t, st)
	b.cur.Runs.NumericsOf = func(model.Precision) string { return "another backend" } // which all roles of the process share
	for name, c := range map[string]struct{ fn, in any }{
		"curate": {b.cur.Curate, CurateInput{Run: benchRun}}, "prepare": {b.tr.PrepareModel, FineTuneInput{Run: benchRun}},
		"tune": {b.tr.FineTuneSteps, FineTuneInput{Run: benchRun, From: 4, To: 6}}, "begin": {b.tr.BeginStage, beginOf("one", 0, p.sft, 0)},
		"train": {b.tr.TrainStep, in[0]}, "checkpoint": {b.tr.Checkpoint, checkpointOf(2)}, "publish": {b.tr.PublishWeights, beginOf("one", 0, p.first, 0)},
		"sample": {b.ro.Slice, sliceOf(t, st)}, "select": {b.sel.SelectBatch, selectOf(1)}, "filter": {b.sel.FilterProblems, FilterInput{Run: benchRun}},
		"score": {b.sco.Score, scoreOf(1, 1)},
	} {
		_, err := b.env.ExecuteActivity(c.fn, c.in)
		if text, ok := IsInputError(err); !ok || !strings.Contains(text, "another backend") || !strings.Contains(text, b.rec.NumericsID) {
			t.Errorf("%s: error %v, want one that no retry mends and that names both", name, err)
		}
	}
}

func TestASetOfAnotherDigestOrSizeIsRefused(t *testing.T) {
	st, p := toyRun(t)
	b := process(t, st)
	for _, change := range []func(*Dataset){func(d *Dataset) { d.Digest = digest(nil) }, func(d *Dataset) { d.Problems++ }} {
		d := p.curated.Train
		change(&d)
		if _, err := b.ro.Runs.Problems(t.Context(), d); err == nil || !strings.Contains(err.Error(), d.Key) {
			t.Errorf("%+v: error %v, want one that names the set", d, err)
		}
	}
}
