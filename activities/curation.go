package activities

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/curate"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// Names of a run's inputs in the store.
const (
	InputProblems = "problems.jsonl"
	InputHeldOut  = "held-out.jsonl"
	InputDemos    = "demonstrations.jsonl"
)

// InputBenchmark names the i-th benchmark file of a recipe.
func InputBenchmark(i int) string { return fmt.Sprintf("benchmark-%d.jsonl", i) }

// Curation makes the sets of problems that a run works with.
type Curation struct {
	Runs  *Runs
	Store store.Store
}

// Curate reads or generates the problems, removes what cannot train, each with its reason, and makes the sets durable.
func (c *Curation) Curate(ctx context.Context, in CurateInput) (CurateResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := c.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return CurateResult{}, err
	}
	raw, err := c.gather(ctx, rec, in.Run)
	if err != nil {
		return CurateResult{}, err
	}
	progress.step()
	tok, err := c.tokenizer(ctx, rec, in.Run, raw)
	if err != nil {
		return CurateResult{}, err
	}
	progress.step()
	sets, err := raw.curate(rec, tok)
	if err != nil {
		return CurateResult{}, InputError(err)
	}
	progress.step()
	return c.keep(ctx, rec, in.Run, sets)
}

// rawSets are a run's rows as they came.
type rawSets struct {
	problems   []problem.Problem
	bad        []problem.BadRow
	heldOut    []problem.Problem
	benchmarks [][]problem.Problem
	demos      []problem.Demo
}

// gather reads the run's inputs and generates what the recipe asks for.
func (c *Curation) gather(ctx context.Context, rec Recipe, run string) (raw rawSets, err error) {
	g := rec.Data.Generated()
	if rec.Data.Problems != "" {
		raw.problems, raw.bad, err = c.rows(ctx, run, InputProblems)
	} else if g.Problems > 0 {
		raw.problems, err = problem.Generate(rec.Seed, g.Problems, problem.Train)
	}
	if err != nil {
		return raw, err
	}
	if rec.Data.HeldOut != "" {
		raw.heldOut, err = c.strictRows(ctx, run, InputHeldOut)
	} else if g.HeldOut > 0 {
		raw.heldOut, err = problem.Generate(rec.Seed, g.HeldOut, problem.HeldOut)
	}
	if err != nil {
		return raw, err
	}
	for i := range rec.Data.Benchmarks {
		rows, err := c.strictRows(ctx, run, InputBenchmark(i))
		if err != nil {
			return raw, err
		}
		raw.benchmarks = append(raw.benchmarks, rows)
	}
	raw.demos, err = c.demos(ctx, rec, run)
	return raw, err
}

func (c *Curation) demos(ctx context.Context, rec Recipe, run string) ([]problem.Demo, error) {
	if n := rec.Data.Generated().Demos; n > 0 {
		return problem.Demonstrations(rec.Seed, n, rec.Agent.Tool)
	}
	if rec.Data.Demos == "" {
		return nil, nil
	}
	body, _, err := c.Store.Get(ctx, InputKey(run, InputDemos))
	if err != nil {
		return nil, err
	}
	demos, bad, err := problem.ReadDemos(bytes.NewReader(body))
	if err == nil && len(bad) > 0 {
		err = InputError(fmt.Errorf("%s: %d bad rows, the first is %s", InputDemos, len(bad), bad[0]))
	}
	return demos, err
}

func (c *Curation) rows(ctx context.Context, run, name string) ([]problem.Problem, []problem.BadRow, error) {
	body, _, err := c.Store.Get(ctx, InputKey(run, name))
	if err != nil {
		return nil, nil, err
	}
	return problem.ReadJSONL(bytes.NewReader(body))
}

// strictRows reads a set of which every row must be good: a measure that loses rows is another measure.
func (c *Curation) strictRows(ctx context.Context, run, name string) ([]problem.Problem, error) {
	good, bad, err := c.rows(ctx, run, name)
	if err == nil && len(bad) > 0 {
		err = InputError(fmt.Errorf("%s: %d bad rows, the first is %s", name, len(bad), bad[0]))
	}
	return good, err
}

// curatedSets are a run's sets after curation.
type curatedSets struct {
	train, heldOut []problem.Problem
	demos          []problem.Demo
	report         curate.Report
}

func (r rawSets) curate(rec Recipe, tok *tokenizer.Tokenizer) (curatedSets, error) {
	out := curatedSets{heldOut: r.heldOut, demos: r.demos}
	out.train, out.report = curate.Curate(r.problems, r.benchmarks, curate.Options{
		BadRows: r.bad, NGram: rec.Data.NGram, HeldOut: r.heldOut, HeldOutRun: rec.Data.HeldOutOverlap == "ngram",
		MaxPromptTokens: rec.Agent.MaxPromptTokens, PromptTokens: func(text string) int { return promptTokens(rec, tok, text) },
	})
	if share := rec.Data.HeldOutShare; share > 0 {
		out.split(rec, share)
		out.keepApart(rec)
	}
	if len(rec.Stages) > 0 && len(out.train) == 0 {
		return out, fmt.Errorf("no training problem is left of %d rows; removed: %v", out.report.Rows, out.report.Counts)
	}
	if len(out.heldOut) == 0 {
		return out, fmt.Errorf("no held-out problem is left to evaluate on")
	}
	if rec.SFT.Steps > 0 && len(out.demos) == 0 {
		return out, fmt.Errorf("sft.steps is %d and there is no demonstration to learn from: give some, or set it to 0", rec.SFT.Steps)
	}
	return out, nil
}

// split keeps a seeded share of the curated problems for evaluation.
func (s *curatedSets) split(rec Recipe, share float64) {
	order := philox.NewKey(rec.Seed).Perm(philox.Address{Purpose: philox.Shuffle, Stage: splitStage}, len(s.train))
	n := max(1, int(share*float64(len(s.train))))
	var kept []problem.Problem
	held := map[int]bool{}
	for _, i := range order[:min(n, len(order))] {
		held[i] = true
	}
	for i, p := range s.train {
		if held[i] {
			s.heldOut = append(s.heldOut, p)
		} else {
			kept = append(kept, p)
		}
	}
	s.train = kept
}

// keepApart removes what shares words with the problems that were split off, as the recipe compares training problems with
// held-out ones.
func (s *curatedSets) keepApart(rec Recipe) {
	train, again := curate.Curate(s.train, nil, curate.Options{
		NGram: rec.Data.NGram, HeldOut: s.heldOut, HeldOutRun: rec.Data.HeldOutOverlap == "ngram",
	})
	s.train = train
	s.report = s.report.Further(again.Removed, append(slices.Clip(s.heldOut), train...))
}

// splitStage keeps the draws of the split apart from those of every stage of a recipe, which has fewer than 200.
const splitStage = 253

// keep makes the sets and the report of every removal durable.
func (c *Curation) keep(ctx context.Context, rec Recipe, run string, sets curatedSets) (out CurateResult, err error) {
	if out.Train, err = putProblems(ctx, c.Store, run+"-train", sets.train); err != nil {
		return out, err
	}
	if out.HeldOut, err = putProblems(ctx, c.Store, run+"-held-out", sets.heldOut); err != nil {
		return out, err
	}
	if out.Demos, err = putLines(ctx, c.Store, run+"-demonstrations", "demonstrations.jsonl", sets.demos); err != nil {
		return out, err
	}
	body, err := encodeIndented(sets.report)
	if err != nil {
		return out, err
	}
	out.Report = Ref{Key: store.DatasetKey(run+"-train", out.Train.Digest, "report.json"), Digest: digest(body)}
	out.Removed = map[string]int{}
	for _, count := range sets.report.Counts {
		out.Removed[string(count.Reason)] = count.Rows
	}
	_, err = putJSONOnce(ctx, c.Store, curationKey(run), out)
	if err != nil {
		return out, err
	}
	return out, store.PutSame(ctx, c.Store, out.Report.Key, body)
}

// curationKey holds what curation kept, for the report.
func curationKey(run string) string { return store.ArtifactKey(run, "report", "curation.json") }
