package activities

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/store"
)

// FilterProblems keeps the tried problems that the policy does not solve in every sample (rStar2-Agent §4.3, stage 3). If it
// solves them all, all are kept: a stage needs problems, and its rounds will say that nothing is left to learn.
func (s *Selection) FilterProblems(ctx context.Context, in FilterInput) (Dataset, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := s.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return Dataset{}, err
	}
	set, err := s.Runs.Problems(ctx, in.Problems)
	if err != nil {
		return Dataset{}, err
	}
	order := promptOrder{key: philox.NewKey(rec.Seed), stage: in.StageIndex, n: len(set)}
	var hard, tried []problem.Problem
	for i := range in.Tried {
		p := set[order.index(i)]
		easy, err := s.tooEasy(ctx, in, i)
		if err != nil {
			return Dataset{}, err
		}
		tried = append(tried, p)
		if !easy {
			hard = append(hard, p)
		}
		progress.step()
	}
	if len(hard) == 0 {
		hard = tried
	}
	return putProblems(ctx, s.Store, in.Run+"-"+in.Stage+"-filtered", hard)
}

func (s *Selection) tooEasy(ctx context.Context, in FilterInput, ordinal int) (bool, error) {
	g, err := readGroup(ctx, s.Store, SliceInput{Run: in.Run, Stage: in.Stage, Purpose: PurposeFilter, Round: PurposeFilter, Ordinal: ordinal}, in.Samples)
	if err != nil {
		return false, err
	}
	correct := make([]bool, len(g))
	for i := range g {
		correct[i] = g[i].Verdict.Outcome == agent.Correct
	}
	return rl.TooEasy(correct), nil
}

// putProblems makes a set durable under its own digest.
func putProblems(ctx context.Context, s store.Store, name string, set []problem.Problem) (Dataset, error) {
	return putLines(ctx, s, name, "problems.jsonl", set)
}

func putLines[T any](ctx context.Context, s store.Store, name, file string, rows []T) (Dataset, error) {
	body, err := encodeLines(rows)
	if err != nil {
		return Dataset{}, err
	}
	d := Dataset{Ref: Ref{Digest: digest(body)}, Problems: len(rows)}
	d.Key = store.DatasetKey(name, d.Digest, file)
	if err := store.PutSame(ctx, s, d.Key, body); err != nil {
		return Dataset{}, fmt.Errorf("set %s: %w", name, err)
	}
	return d, nil
}
