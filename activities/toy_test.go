package activities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
)

// toyText is a run of three stages with a model of one layer.
const toyText = `
version: 1
name: toy
seed: 5
model:
  init: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 8,
         intermediate_size: 32, vocab_size: 512, rope_theta: 10000, max_position_embeddings: 2048}
data: {generate: {problems: 24, held_out: 8, demonstrations: 10}, held_out_overlap: text}
agent: {system_prompt: Use the tool., max_prompt_tokens: 900}
sft: {steps: 4, batch: 3, learning_rate: 0.01, save_every: 2}
rl: {learning_rate: 0.01}
stages:
  - {name: one, steps: 4, prompts: 3, samples: 16, keep: 8, response_tokens: 400, turns: 3}
  - {name: two, steps: 2, prompts: 3, samples: 16, keep: 8, response_tokens: 400, turns: 3, reset_optimizer: true}
  - {name: three, steps: 2, prompts: 3, samples: 4, keep: 2, response_tokens: 400, turns: 3, learning_rate: 0.002}
eval: {problems: 3, samples: 4, turns: 3, response_tokens: 400}
checkpoint: {every_steps: 2, keep: 2}
`

func toyRecipe(t *testing.T) Recipe {
	t.Helper()
	rec, err := recipe.Parse([]byte(toyText))
	must(t, err)
	rec.NumericsID = model.NumericsID()
	return rec
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// process is a new process of every role on a store: it remembers nothing of the ones before.
func process(t *testing.T, st store.Store) *bench {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	b := &bench{t: t, env: suite.NewTestActivityEnvironment(), st: st, rec: toyRecipe(t)}
	b.env.SetTestTimeout(time.Hour)
	runs := &Runs{Store: st, NumericsOf: func(model.Precision) string { return b.rec.NumericsID }}
	b.eng = &Engines{Policies: &Policies{Runs: runs, Store: st}, Options: engine.Options{Blocks: 512}}
	b.pool = &Pools{}
	b.cur = &Curation{Runs: runs, Store: st}
	b.tr = &Trainer{Runs: runs, Store: st, Owner: "test"}
	b.ro = &Rollouts{Runs: runs, Store: st, Engines: b.eng, Pools: b.pool}
	b.sel = &Selection{Runs: runs, Store: st}
	b.sco = &Scoring{Runs: runs, Store: st}
	for _, a := range []any{b.cur, b.tr, b.ro, b.sel, b.sco} {
		b.env.RegisterActivity(a)
	}
	t.Cleanup(b.eng.Close)
	return b
}

// try runs an activity that may fail.
func try[T any](b *bench, fn, in any) (out T, err error) {
	v, err := b.env.ExecuteActivity(fn, in)
	if err == nil && v.HasValue() {
		err = v.Get(&out)
	}
	return out, err
}

// checkpoint saves a step of stage one.
func (b *bench) checkpoint(step int64) {
	b.t.Helper()
	_, err := try[any](b, b.tr.Checkpoint, checkpointOf(step))
	must(b.t, err)
}

// refused runs an activity that must fail with words.
func refused(t *testing.T, b *bench, fn, in any, words string) {
	t.Helper()
	if _, err := b.env.ExecuteActivity(fn, in); err == nil || !strings.Contains(err.Error(), words) {
		t.Fatalf("error %v, want one that says %q", err, words)
	}
}

// prepared is a run whose first stage has begun.
type prepared struct {
	objects map[string][]byte
	curated CurateResult
	sft     Weights
	first   Weights // of stage one
}

// toyRun prepares the run once, and gives every test its own copy of the store.
func toyRun(t *testing.T) (*store.Memory, prepared) {
	t.Helper()
	p := prepare(t)
	st := store.NewMemory()
	for key, body := range p.objects {
		put(t, st, key, body)
	}
	return st, p
}

var (
	prepareOnce sync.Once
	toy         prepared
)

func prepare(t *testing.T) prepared {
	prepareOnce.Do(func() {
		st := store.NewMemory()
		putRecipe(t, st, toyRecipe(t))
		b := process(t, st)
		toy.curated = call[CurateResult](b, b.cur.Curate, CurateInput{Run: benchRun})
		call[FineTuneResult](b, b.tr.PrepareModel, FineTuneInput{Run: benchRun, Demos: toy.curated.Demos})
		for from := 0; from < 4; from += 2 {
			in := FineTuneInput{Run: benchRun, Demos: toy.curated.Demos, From: from, To: from + 2}
			toy.sft = call[FineTuneResult](b, b.tr.FineTuneSteps, in).Weights
		}
		toy.first = call[Weights](b, b.tr.BeginStage, beginOf("one", 0, toy.sft, 0))
		toy.objects = contents(t, st)
	})
	return toy
}

func beginOf(stage string, index int, from Weights, step int64) BeginStageInput {
	return BeginStageInput{Run: benchRun, Stage: stage, StageIndex: index, From: from, Step: step}
}

func checkpointOf(step int64) CheckpointInput {
	return CheckpointInput{Run: benchRun, Stage: "one", Step: step}
}

func putRecipe(t *testing.T, st store.Store, rec Recipe) {
	t.Helper()
	body, err := json.Marshal(rec)
	must(t, err)
	put(t, st, store.RecipeKey(benchRun), body)
}

// retold makes another recipe the run's, and that by which all of its checkpoints were trained.
func retold(t *testing.T, st store.Store, rec Recipe) {
	t.Helper()
	before := digest(get(t, st, store.RecipeKey(benchRun)))
	must(t, st.Delete(t.Context(), store.RecipeKey(benchRun)))
	putRecipe(t, st, rec)
	after := digest(get(t, st, store.RecipeKey(benchRun)))
	for key, body := range contents(t, st) {
		if strings.HasSuffix(key, "/manifest.json") {
			put(t, st, key, bytes.ReplaceAll(body, []byte(before), []byte(after)))
		}
	}
}

func put(t *testing.T, st store.Store, key string, body []byte) {
	t.Helper()
	_, err := st.Put(t.Context(), key, body, store.PutOptions{})
	must(t, err)
}

func get(t *testing.T, st store.Store, key string) []byte {
	t.Helper()
	body, _, err := st.Get(t.Context(), key)
	must(t, err)
	return body
}

func contents(t *testing.T, st store.Store) map[string][]byte {
	t.Helper()
	entries, err := st.List(t.Context(), "")
	must(t, err)
	out := map[string][]byte{}
	for _, e := range entries {
		out[e.Key] = get(t, st, e.Key)
	}
	return out
}

func canonical(t *testing.T, st store.Store) map[string]string {
	t.Helper()
	out, err := Canonical(t.Context(), st, benchRun)
	must(t, err)
	return out
}

// wantSame compares what two runs decided.
func wantSame(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for key := range got {
		if want[key] == "" {
			t.Errorf("%s: %s is there, want nothing", what, key)
		} else if got[key] != want[key] {
			t.Errorf("%s: %s differs", what, key)
		}
	}
	for key := range want {
		if got[key] == "" {
			t.Errorf("%s: %s is missing", what, key)
		}
	}
	t.FailNow()
}

func audited(t *testing.T, st store.Store) (store.Counts, []store.Event) {
	t.Helper()
	events, err := store.ReadAudit(t.Context(), st, benchRun)
	must(t, err)
	return store.CountAudit(events), events
}

// rounds makes the batches of stage one's first n steps durable.
func rounds(t *testing.T, st store.Store, n int) []TrainInput {
	t.Helper()
	var out []TrainInput
	for i := range n {
		b := batch{Stage: "one", Iteration: i, Step: int64(i + 1), Groups: 3, Samples: 48, Correct: 12, Reward: 0.25, Batch: toyBatch(i)}
		out = append(out, putBatch(t, st, b))
	}
	return out
}

func putBatch(t *testing.T, st store.Store, b batch) TrainInput {
	t.Helper()
	body, err := b.encode()
	must(t, err)
	key := store.BatchKey(benchRun, b.Stage, b.Iteration, 0)
	put(t, st, key, body)
	return TrainInput{Run: benchRun, Stage: b.Stage, Iteration: b.Iteration, Step: b.Step, Batch: Ref{Key: key, Digest: digest(body)}}
}

// toyBatch is four short sequences of random ids near the log-probs of a policy that knows nothing.
func toyBatch(round int) train.Batch {
	key, at := philox.NewKey(99), philox.Address{Purpose: philox.Shuffle, Iteration: round}
	var b train.Batch
	for i := range 4 {
		s := train.Sequence{Ordinal: i, Advantage: float32(1 - 2*(i%2))}
		at.Ordinal = i
		for k := range 8 + i {
			sampled := uint8(min(k/3, 1))
			s.IDs = append(s.IDs, int32(key.Uniform(at.WithToken(k))*512))
			s.Mask = append(s.Mask, sampled)
			s.LogProbs = append(s.LogProbs, -6.2*float32(sampled))
		}
		b.Sequences = append(b.Sequences, s)
	}
	return b
}

// sevens is a set of problems whose answer is 7, named toy-0 and on.
func sevens(t *testing.T, st store.Store, n int) (Dataset, []problem.Problem) {
	t.Helper()
	var set []problem.Problem
	for i := range n {
		set = append(set, problem.Problem{ID: fmt.Sprintf("toy-%d", i), Problem: fmt.Sprintf("What is seven, asked %d times?", i), Answer: "7"})
	}
	d, err := putProblems(t.Context(), st, "toy", set)
	must(t, err)
	return d, set
}
