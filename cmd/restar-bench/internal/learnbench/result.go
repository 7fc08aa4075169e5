package learnbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/product"
)

// result is what a finished run left.
type result struct {
	planned
	cost
	curves
}

// cost is what `restar run --figures` writes of a run's time.
type cost struct {
	Minutes float64 `json:"minutes_after_build"`
	Rollout float64 `json:"step_seconds_rollout"`
	Sandbox float64 `json:"step_seconds_sandbox"`
	Train   float64 `json:"step_seconds_train"`
}

// curves are what `restar run --curves` writes.
type curves struct {
	MinutesRL float64 `json:"minutes_rl"`
	Evals     []eval  `json:"evaluations"`
	Steps     []step  `json:"steps"`
	Star      []star  `json:"star,omitempty"`
}

// star is a stage of STaR.
type star struct {
	Iterations []struct {
		Score float64 `json:"score"`
		Steps int     `json:"steps"`
	} `json:"iterations"` // the base first
	Best  int    `json:"best"`
	Ended string `json:"ended"`
}

// eval is one evaluation on held-out problems.
type eval struct {
	Step             int64     `json:"step"`
	Problems         int       `json:"problems"`
	Samples          int       `json:"samples"`
	Pass1            float64   `json:"avg_at_k"`
	ToolErrorCorrect float64   `json:"tool_error_correct"`
	Tokens           float64   `json:"tokens_per_response"`
	PassAt           []float64 `json:"pass_at"`
	MajAt            []float64 `json:"maj_at"`
}

// step is one optimizer step and the rollouts before it.
type step struct {
	Step           int64   `json:"step"`
	Reward         float64 `json:"reward"`
	CorrectCalls   int     `json:"correct_calls"`
	CorrectErrors  int     `json:"correct_call_errors"`
	ResponseTokens float64 `json:"response_tokens"`
	Entropy        float64 `json:"entropy"`
}

// errNotFinished says that a run has not left its results yet.
var errNotFinished = errors.New("the run is not finished")

// readResult reads a run's folder. Without results it is errNotFinished.
func readResult(dir string, p planned) (result, error) {
	r := result{planned: p}
	if err := readJSON(filepath.Join(dir, product.FiguresFile), &r.cost); err != nil {
		return r, err
	}
	if err := readJSON(filepath.Join(dir, product.CurvesFile), &r.curves); err != nil {
		return r, err
	}
	if len(r.Evals) < 2 || len(r.Steps) == 0 || len(r.first().PassAt) == 0 || len(r.last().PassAt) == 0 {
		return r, fmt.Errorf("%s holds %d evaluations and %d steps, want one before and one after at least one step", filepath.Join(dir, product.CurvesFile), len(r.Evals), len(r.Steps))
	}
	return r, nil
}

func readJSON(path string, into any) error {
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return errNotFinished
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// first is the evaluation before reinforcement learning, last the one after it.
func (r result) first() eval { return r.Evals[0] }
func (r result) last() eval  { return r.Evals[len(r.Evals)-1] }

// gain is that of held-out pass@1, in points.
func (r result) gain() float64 { return 100 * (r.last().Pass1 - r.first().Pass1) }

// drop is the share of the tool errors in correct held-out trajectories that learning took away. It is not a number where there
// were none.
func (r result) drop() float64 { return 1 - r.last().ToolErrorCorrect/r.first().ToolErrorCorrect }

// window is how many steps are pooled to say where training began and ended: one step's rollouts hold few errors.
const window = 10

// opening and closing are the error rates among the calls of correct rollouts of the first and of the last steps, which rStar2-Agent
// plots (Fig 4).
func (r result) opening() float64 { return errorRate(r.Steps[:min(window, len(r.Steps))]) }
func (r result) closing() float64 { return errorRate(r.Steps[max(0, len(r.Steps)-window):]) }

func errorRate(steps []step) float64 {
	calls, failed := 0, 0
	for _, s := range steps {
		calls, failed = calls+s.CorrectCalls, failed+s.CorrectErrors
	}
	if calls == 0 {
		return 0
	}
	return float64(failed) / float64(calls)
}
