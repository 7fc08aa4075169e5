package activities

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/store"
)

// Curves are what a run learned, over its steps and over the number of samples. They are read from the store of a run that has
// ended, and are part of none of its objects.
type Curves struct {
	Evals []EvalCurve   `json:"evaluations"` // by step, the one before reinforcement learning first
	Steps []StepMetrics `json:"steps"`
	Star  []StarCurve   `json:"star,omitempty"` // of the stages of STaR
}

// StarCurve is a stage of STaR: its policies with their scores, which of them is best, and what ended it ("plateau", "iterations",
// or nothing if a person did).
type StarCurve struct {
	Stage      string      `json:"stage"`
	Iterations []Iteration `json:"iterations"`
	Best       int         `json:"best"`
	Ended      string      `json:"ended"`
}

// EvalCurve is one evaluation with its scores for every number of samples.
type EvalCurve struct {
	EvalResult
	Step             int64     `json:"step"`               // optimizer steps before it, 0 before reinforcement learning
	ToolErrorCorrect float64   `json:"tool_error_correct"` // errors among the calls of correct trajectories (rStar2-Agent Fig 4)
	PassAt           []float64 `json:"pass_at"`            // pass@1 to pass@Samples
	MajAt            []float64 `json:"maj_at"`             // maj@1 to maj@Samples
}

// ReadCurves gathers the evaluations and steps of a run.
func ReadCurves(ctx context.Context, s store.Store, run string, rec Recipe) (Curves, error) {
	var out Curves
	stages := []string{StageSFT}
	for _, st := range rec.Stages {
		for _, kept := range st.Kept() {
			steps, err := metricsOf[StepMetrics](ctx, s, run, kept)
			if err != nil {
				return out, err
			}
			out.Steps = append(out.Steps, steps...)
		}
		if st.Star != nil { // the policies that it scored on held-out problems, its first one too
			stages = append(append(stages, st.Iteration(0)), st.Kept()...)
			all, err := Iterations(ctx, s, run, st.Name)
			if err != nil {
				return out, err
			}
			out.Star = append(out.Star, StarCurve{st.Name, all, STaRBest(Scores(all)), STaREnds(st, Scores(all))})
		}
		stages = append(stages, st.Name)
	}
	slices.SortFunc(out.Steps, func(a, b StepMetrics) int { return cmp.Compare(a.Step, b.Step) })
	for _, stage := range stages {
		evals, err := evalCurves(ctx, s, run, stage)
		if err != nil {
			return out, err
		}
		out.Evals = append(out.Evals, evals...)
	}
	return out, nil
}

// evalCurves reads the evaluations of a stage in the order of their steps.
func evalCurves(ctx context.Context, s store.Store, run, stage string) ([]EvalCurve, error) {
	entries, err := s.List(ctx, store.ArtifactsPrefix(run, stage))
	if err != nil {
		return nil, err
	}
	var out []EvalCurve
	for _, e := range entries {
		if name := path.Base(e.Key); !strings.HasPrefix(name, "eval-") {
			continue
		}
		r, err := readJSON[EvalResult](ctx, s, e.Key)
		if err != nil {
			return nil, err
		}
		c, err := evalCurve(ctx, s, run, r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b EvalCurve) int { return cmp.Compare(a.Step, b.Step) })
	return out, nil
}

func evalCurve(ctx context.Context, s store.Store, run string, r EvalResult) (EvalCurve, error) {
	c := EvalCurve{EvalResult: r}
	of := r.Version[:max(0, strings.LastIndexByte(r.Version, '-'))] // of STaR's policies another than the stage that evaluates them
	_, step, err := parseVersion(Weights{Stage: of, Version: r.Version})
	if err != nil {
		return c, err
	}
	if of != StageSFT {
		c.Step = step
	}
	var graded [][]rl.Graded
	calls, failed := 0, 0
	for i := range r.Problems {
		slice := SliceInput{Run: run, Stage: r.Stage, Purpose: PurposeEval, Round: r.Name, Ordinal: i}
		g, err := readGroup(ctx, s, slice, r.Samples)
		if err != nil {
			return c, err
		}
		graded = append(graded, grade(g))
		for j := range g {
			if g[j].Verdict.Outcome == agent.Correct {
				n := g[j].Counts()
				calls, failed = calls+n.Calls, failed+n.Errors
			}
		}
	}
	c.ToolErrorCorrect = share(failed, calls)
	for k := 1; k <= r.Samples; k++ {
		pass, err := rl.PassAtK(graded, k)
		if err != nil {
			return c, err
		}
		maj, err := rl.MajAt(graded, k)
		if err != nil {
			return c, err
		}
		c.PassAt, c.MajAt = append(c.PassAt, pass), append(c.MajAt, maj)
	}
	return c, nil
}
