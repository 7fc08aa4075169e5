package activities

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// givenModel is a run that begins with a folder whose files say where a sequence ends.
func givenModel(t *testing.T, generation string) (*bench, *store.Memory) {
	t.Helper()
	dir, st := t.TempDir(), store.NewMemory()
	tok, err := tokenizer.Train([]string{"What is two and three?"}, 320, tokenizer.Markers())
	must(t, err)
	must(t, tok.Save(dir))
	end, _ := tok.SpecialID(tokenizer.TurnEnd)
	m, err := model.New(model.Config{VocabSize: 320, HiddenSize: 16, IntermediateSize: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, MaxPosition: 2048,
		RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.02, EOSTokenID: &end, MoreEOSTokenIDs: []int32{11}}, 1)
	must(t, err)
	must(t, m.Save(dir))
	if generation != "" {
		must(t, os.WriteFile(dir+"/"+model.GenerationFile, []byte(generation), 0o600))
	}
	folder, err := files(dir)
	must(t, err)
	var names []string
	for name, body := range folder {
		names = append(names, name)
		put(t, st, InputKey(benchRun, modelInput(name)), body)
	}
	list, err := json.Marshal(names)
	must(t, err)
	put(t, st, InputKey(benchRun, ModelFiles), list)
	rec := toyRecipe(t)
	rec.Model.From, rec.Model.Init = "given", nil
	putRecipe(t, st, rec)
	return process(t, st), st
}

func TestARunKnowsWhereTheGivenModelEndsASequence(t *testing.T) {
	for generation, more := range map[string][]int32{"": nil, `{"eos_token_id": null}`: nil, `{"eos_token_id": 11}`: nil, `{"eos_token_id": [7, 11, 9]}`: {7, 9}} {
		b, st := givenModel(t, generation)
		call[FineTuneResult](b, b.tr.PrepareModel, FineTuneInput{Run: benchRun})
		c, err := b.tr.Runs.config(t.Context(), benchRun)
		must(t, err)
		got, err := (&Runs{Store: st}).Ends(t.Context(), benchRun)
		if want := append([]int32{*c.EOSTokenID, 11}, more...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: a sequence ends at %v (%v), want %v", generation, got, err, want)
		}
	}
	b, _ := givenModel(t, `{"eos_token_id": "seven"}`)
	_, err := b.env.ExecuteActivity(b.tr.PrepareModel, FineTuneInput{Run: benchRun})
	if text, ok := IsInputError(err); !ok || !strings.Contains(text, `eos_token_id is "seven"`) {
		t.Errorf("error %v, want one that the user can mend", err)
	}
}

// sampledSlice are the trajectories of a slice that the toy policy samples, from a folder with a generation_config.json.
func sampledSlice(t *testing.T, generation string) []agent.Trajectory {
	t.Helper()
	st, _ := toyRun(t)
	if generation != "" {
		put(t, st, modelKey(benchRun, model.GenerationFile), []byte(generation))
	}
	in := sliceOf(t, st)
	in.Samples, in.Tokens = 4, 40
	b := process(t, st)
	b.ro.Pools = &writer{} // the policy knows nothing, so it calls nothing
	call[SliceResult](b, b.ro.Slice, in)
	g, err := readGroup(t.Context(), st, in, in.Samples)
	must(t, err)
	return g
}

func TestARolloutStopsAtEveryIDThatTheModelsFolderNames(t *testing.T) {
	plain := sampledSlice(t, "")
	first := plain[0]
	end := first.IDs[first.PromptLen+5]
	stopped := sampledSlice(t, fmt.Sprintf(`{"eos_token_id": [%d]}`, end))
	for i, p := range plain {
		want, stop := p.IDs, p.Stop
		if at := slices.Index(p.IDs[p.PromptLen:], end); at >= 0 {
			want, stop = p.IDs[:p.PromptLen+at+1], agent.Answered
		}
		if got := stopped[i]; !slices.Equal(got.IDs, want) || got.Stop != stop {
			t.Errorf("sample %d: %v, stop %q, want the same ids up to the first %d, %v, stop %q", i, got.IDs[got.PromptLen:], got.Stop, end, want[p.PromptLen:], stop)
		}
	}
	if first.Stop == agent.Answered && len(stopped[0].IDs) == len(first.IDs) {
		t.Errorf("the first sample ends at %d anyway", end)
	}
	for i, again := range sampledSlice(t, `{"eos_token_id": null}`) {
		if got, want := mustDigest(t, again), mustDigest(t, plain[i]); got != want {
			t.Errorf("sample %d of a folder that names no further id has digest %s, want %s", i, got, want)
		}
	}
}

func mustDigest(t *testing.T, x agent.Trajectory) string {
	t.Helper()
	d, err := x.Digest()
	must(t, err)
	return d
}
