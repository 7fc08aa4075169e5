package workflows

import (
	"fmt"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/recipe"
	"go.temporal.io/sdk/workflow"
)

// EvaluateInput pins what is measured: one version of the weights, on the first Count problems of one set.
type EvaluateInput struct {
	Run        string             `json:"run"`
	Recipe     activities.Recipe  `json:"recipe"`
	Name       string             `json:"name"`
	Stage      string             `json:"stage"`
	StageIndex int                `json:"stage_index"`
	Weights    activities.Weights `json:"weights"`
	Problems   activities.Dataset `json:"problems"`
}

// Evaluate samples held-out problems with pinned weights and scores them.
func Evaluate(ctx workflow.Context, in EvaluateInput) (activities.EvalResult, error) {
	var out activities.EvalResult
	count := min(in.Recipe.Eval.Problems, in.Problems.Problems)
	round := RolloutID(in.Run, in.Stage, "eval-"+in.Name)
	p := Progress{Run: in.Run, Phase: PhaseEvaluate, Stage: recipe.StageName(in.Stage), Total: count, Child: round}
	if err := answer(ctx, &p); err != nil {
		return out, err
	}
	if err := label(ctx, in.Run, recipe.StageName(in.Stage)); err != nil {
		return out, err
	}
	state := RolloutState{Slice: in.slice(), Prompts: count, Samples: in.Recipe.Eval.Samples}
	child := as(ctx, round, "%d problems, %d samples each, weights %s", count, state.Samples, in.Weights.Version)
	if err := workflow.ExecuteChildWorkflow(child, Rollout, state).Get(ctx, &p.Counts); err != nil {
		return out, err
	}
	score := activities.ScoreInput{Run: in.Run, Stage: in.Stage, Name: in.Name, Problems: in.Problems, Count: count, Samples: state.Samples, Weights: in.Weights}
	err := workflow.ExecuteActivity(on(ctx, activities.QueueCPU, shortWork, "score %s", in.Name), scoring.Score, score).Get(ctx, &out)
	if err == nil {
		workflow.SetCurrentDetails(ctx, evalTable([]activities.EvalResult{out}))
	}
	return out, err
}

func (in EvaluateInput) slice() activities.SliceInput {
	e := in.Recipe.Eval
	return activities.SliceInput{
		Run: in.Run, Stage: in.Stage, StageIndex: in.StageIndex, Purpose: activities.PurposeEval, Round: in.Name,
		Problems: in.Problems, Weights: in.Weights, Tokens: e.Tokens, Turns: e.Turns, Temperature: e.Temperature,
	}
}

func evalTable(evals []activities.EvalResult) string {
	out := "| policy | avg@k | 95% | maj@k | pass@k | calls | tool errors |\n|---|---|---|---|---|---|---|\n"
	for _, e := range evals {
		out += fmt.Sprintf("| %s | %.1f%% | %.1f–%.1f | %.1f%% | %.1f%% | %.2f | %.2f |\n", e.Name,
			100*e.Avg, 100*e.AvgLow, 100*e.AvgHigh, 100*e.Maj, 100*e.Pass, e.CallsPerProblem, e.ErrorsPerProblem)
	}
	return out
}
