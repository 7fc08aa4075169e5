package activities

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/verify"
)

// Scoring turns journals into results and reports.
type Scoring struct {
	Runs  *Runs
	Store store.Store
}

// bootstrapRounds resamplings put the interval's own noise well below a tenth of a point.
const bootstrapRounds = 2000

// EvalKey holds the result of an evaluation.
func EvalKey(run, stage, name string) string {
	return store.ArtifactKey(run, stage, "eval-"+name+".json")
}

// Score computes an evaluation's result from its journals and makes it durable.
func (s *Scoring) Score(ctx context.Context, in ScoreInput) (EvalResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := s.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return EvalResult{}, err
	}
	out := EvalResult{
		Name: in.Name, Stage: in.Stage, Version: in.Weights.Version, Problems: in.Count, Samples: in.Samples, Temperature: rec.Eval.Temperature,
	}
	var graded [][]rl.Graded
	var counts SliceResult
	for i := range in.Count {
		slice := SliceInput{Run: in.Run, Stage: in.Stage, Purpose: PurposeEval, Round: in.Name, Ordinal: i}
		g, err := readGroup(ctx, s.Store, slice, in.Samples)
		if err != nil {
			return out, err
		}
		graded = append(graded, grade(g))
		for j := range g {
			counts = counts.Add(countOne(&g[j]))
		}
		progress.step()
	}
	if err := out.score(graded, counts, rec); err != nil {
		return out, err
	}
	return putJSONOnce(ctx, s.Store, EvalKey(in.Run, in.Stage, in.Name), out)
}

// grade takes the verdicts of one problem's samples. A verdict that is unknown counts as wrong in a score, and is counted
// beside it: leaving it out would raise the score.
func grade(g []agent.Trajectory) []rl.Graded {
	out := make([]rl.Graded, len(g))
	for i := range g {
		out[i] = rl.Graded{Answer: ballot(g[i].Verdict.Answer), Correct: g[i].Verdict.Outcome == agent.Correct}
	}
	return out
}

// ballot is an answer as a vote: the spellings of one integer are one vote.
func ballot(answer string) string {
	if n, ok := verify.Integer(answer); ok {
		return n.String()
	}
	return answer
}

func (r *EvalResult) score(graded [][]rl.Graded, counts SliceResult, rec Recipe) (err error) {
	if r.Avg, err = rl.AvgAtK(graded); err != nil {
		return fmt.Errorf("evaluation %s: %w", r.Name, err)
	}
	if r.Maj, err = rl.MajAtK(graded); err != nil {
		return err
	}
	if r.Pass, err = rl.PassAtK(graded, r.Samples); err != nil {
		return err
	}
	key := philox.NewKey(rec.Seed)
	uniform := func(i int) float64 {
		return key.Uniform(philox.Address{Purpose: philox.Eval, Stage: bootstrapStage, Token: i})
	}
	interval, err := rl.AvgBootstrap(graded, bootstrapRounds, uniform)
	r.AvgLow, r.AvgHigh = interval.Low, interval.High
	n := float64(max(counts.Samples, 1))
	r.CallsPerProblem, r.ErrorsPerProblem = float64(counts.Calls)/n, float64(counts.CallErrors)/n
	r.ToolErrorShare = share(counts.CallErrors, counts.Calls)
	r.TokensPerResponse, r.Unknown = float64(counts.Tokens)/n, counts.Unknown
	return err
}

// bootstrapStage keeps the draws of intervals apart from those of every stage of a recipe, which has fewer than 200.
const bootstrapStage = 254
