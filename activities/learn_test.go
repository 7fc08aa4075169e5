package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/store"
	"go.temporal.io/sdk/testsuite"
	"golang.org/x/sync/errgroup"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

// bench drives the activities in the order of the workflows, in one process and without a server.
type bench struct {
	t    *testing.T
	env  *testsuite.TestActivityEnvironment
	st   store.Store
	rec  recipe.Recipe
	cur  *Curation
	tr   *Trainer
	ro   *Rollouts
	sel  *Selection
	sco  *Scoring
	eng  *Engines
	pool *Pools
}

const benchRun = "learn"

func newBench(t *testing.T, rec recipe.Recipe) *bench {
	var suite testsuite.WorkflowTestSuite
	b := &bench{t: t, env: suite.NewTestActivityEnvironment(), st: store.NewMemory(), rec: rec}
	b.env.SetTestTimeout(time.Hour)
	rec.NumericsID = model.NumericsID()
	body, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.st.Put(context.Background(), store.RecipeKey(benchRun), body, store.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	runs := &Runs{Store: b.st, NumericsID: rec.NumericsID}
	b.eng = &Engines{Policies: &Policies{Store: b.st}, Options: engine.Options{Blocks: 4096}}
	b.pool = &Pools{}
	b.cur = &Curation{Runs: runs, Store: b.st}
	b.tr = &Trainer{Runs: runs, Store: b.st, Owner: "test"}
	b.ro = &Rollouts{Runs: runs, Store: b.st, Engines: b.eng, Pools: b.pool}
	b.sel = &Selection{Runs: runs, Store: b.st}
	b.sco = &Scoring{Runs: runs, Store: b.st}
	for _, a := range []any{b.cur, b.tr, b.ro, b.sel, b.sco} {
		b.env.RegisterActivity(a)
	}
	t.Cleanup(b.eng.Close)
	t.Cleanup(b.pool.Close)
	return b
}

func call[T any](b *bench, fn any, in any) T {
	b.t.Helper()
	v, err := b.env.ExecuteActivity(fn, in)
	if err != nil {
		b.t.Fatalf("%T: %v", in, err)
	}
	var out T
	if v != nil && v.HasValue() {
		if err := v.Get(&out); err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}

func (b *bench) rollout(in SliceInput, prompts, samples int) SliceResult {
	var g errgroup.Group
	g.SetLimit(32)
	results := make(chan SliceResult, prompts*(samples/8+1))
	first := in.Ordinal
	for p := range prompts {
		for s := 0; s*8 < samples; s++ {
			in := in
			in.Ordinal, in.Slice, in.FirstSample, in.Samples = first+p, s, s*8, min(8, samples-s*8)
			g.Go(func() error {
				v, err := b.env.ExecuteActivity(b.ro.Slice, in)
				if err != nil {
					return err
				}
				var r SliceResult
				if err := v.Get(&r); err != nil {
					return err
				}
				results <- r
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		b.t.Fatal(err)
	}
	close(results)
	var sum SliceResult
	for r := range results {
		sum = sum.Add(r)
	}
	return sum
}

func (b *bench) evaluate(name, stage string, w Weights, c CurateResult) EvalResult {
	n := min(b.rec.Eval.Problems, c.HeldOut.Problems)
	begin := time.Now()
	b.rollout(SliceInput{Run: benchRun, Stage: stage, Purpose: PurposeEval, Round: name, Problems: c.HeldOut, Weights: w,
		Tokens: b.rec.Eval.Tokens, Turns: b.rec.Eval.Turns, Temperature: b.rec.Eval.Temperature}, n, b.rec.Eval.Samples)
	r := call[EvalResult](b, b.sco.Score, ScoreInput{Run: benchRun, Stage: stage, Name: name, Problems: c.HeldOut, Count: n, Samples: b.rec.Eval.Samples, Weights: w})
	fmt.Printf("EVAL %s avg %.3f maj %.3f pass %.3f calls %.2f errshare %.3f tokens %.0f (%.0f s)\n", name, r.Avg, r.Maj, r.Pass, r.CallsPerProblem, r.ToolErrorShare, r.TokensPerResponse, time.Since(begin).Seconds())
	return r
}

func TestTheQuickstartRecipeLearns(t *testing.T) {
	path := os.Getenv("RESTAR_LEARN")
	if path == "" {
		t.Skip("set RESTAR_LEARN to a recipe: a whole run takes minutes")
	}
	rec, err := recipe.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, rec)
	c := call[CurateResult](b, b.cur.Curate, CurateInput{Run: benchRun})
	fmt.Printf("curated %d train, %d held out, removed %v\n", c.Train.Problems, c.HeldOut.Problems, c.Removed)
	begin := time.Now()
	ft := call[FineTuneResult](b, b.tr.PrepareModel, FineTuneInput{Run: benchRun, Demos: c.Demos})
	for from := 0; from < rec.SFT.Steps; from += rec.SFT.SaveEvery {
		to := min(from+rec.SFT.SaveEvery, rec.SFT.Steps)
		ft = call[FineTuneResult](b, b.tr.FineTuneSteps, FineTuneInput{Run: benchRun, Demos: c.Demos, From: from, To: to})
		fmt.Printf("SFT %d loss %.4f tokens %d (%.0f s)\n", to, ft.Loss, ft.Tokens, time.Since(begin).Seconds())
	}
	first := b.evaluate("sft", StageSFT, ft.Weights, c)
	w, step := ft.Weights, int64(0)
	last := first
	for i, st := range rec.Stages {
		w = call[Weights](b, b.tr.BeginStage, BeginStageInput{Run: benchRun, Stage: st.Name, StageIndex: i, From: w, Step: step})
		problems := c.Train
		if f := st.Filter; f != nil {
			b.rollout(SliceInput{Run: benchRun, Stage: st.Name, StageIndex: i, Purpose: PurposeFilter, Round: PurposeFilter, Problems: problems, Weights: w,
				Tokens: st.ResponseTokens, Turns: st.Turns, Temperature: 1}, f.Problems, f.Samples)
			problems = call[Dataset](b, b.sel.FilterProblems, FilterInput{Run: benchRun, Stage: st.Name, StageIndex: i, Problems: problems, Tried: f.Problems, Samples: f.Samples})
			fmt.Printf("filter kept %d of %d\n", problems.Problems, f.Problems)
		}
		ordinal := 0
		for it, done := 0, 0; done < st.Steps; it++ {
			t0 := time.Now()
			b.rollout(SliceInput{Run: benchRun, Stage: st.Name, StageIndex: i, Purpose: PurposeRollout, Round: store.IterationGroup(it), Iteration: it, Ordinal: ordinal,
				Problems: problems, Weights: w, Tokens: st.ResponseTokens, Turns: st.Turns, Temperature: 1}, st.Prompts, st.Samples)
			t1 := time.Now()
			chosen := call[SelectResult](b, b.sel.SelectBatch, SelectInput{Run: benchRun, Stage: st.Name, StageIndex: i, Iteration: it, Step: step + 1, FirstOrdinal: ordinal, Prompts: st.Prompts, Weights: w})
			ordinal += st.Prompts
			if chosen.Sequences == 0 {
				fmt.Println("empty round")
				continue
			}
			t2 := time.Now()
			r := call[TrainResult](b, b.tr.TrainStep, TrainInput{Run: benchRun, Stage: st.Name, StageIndex: i, Iteration: it, Step: step + 1, Batch: chosen.Batch})
			step++
			done++
			w = r.Weights
			m := r.Metrics
			fmt.Printf("%s step %d reward %.3f err %.3f ent %.3f gn %.2f ratio %.6f groups %d/%d/%d seqs %d tok/resp %.0f calls %.2f trunc %.2f | rollout %.1f select %.1f train %.1f s\n",
				st.Name, step, m.Reward, m.ToolErrorShare, m.Entropy, m.GradNorm, m.RatioMax, m.Groups-m.AllCorrect-m.AllWrong, m.AllCorrect, m.AllWrong, m.Sequences, m.ResponseTokens, m.CallsPerSample, m.TruncatedShare,
				t1.Sub(t0).Seconds(), t2.Sub(t1).Seconds(), time.Since(t2).Seconds())
		}
		call[any](b, b.tr.Checkpoint, CheckpointInput{Run: benchRun, Stage: st.Name, StageIndex: i, Step: step})
		last = b.evaluate(st.Name, st.Name, w, c)
	}
	fmt.Printf("GAIN %.1f points\n", 100*(last.Avg-first.Avg))
}
