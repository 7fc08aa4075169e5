package training

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workflows"
)

// Figures sum up a finished run for comparison with others. Scores are shares of 1, gains are points, times are means over
// the rounds that had a step.
type Figures struct {
	PassSFT          float64 `json:"pass1_sft"`
	PassFinal        float64 `json:"pass1_final"`
	Gain             float64 `json:"gain_points"`
	ToolErrorSFT     float64 `json:"tool_error_sft"`
	ToolErrorFinal   float64 `json:"tool_error_final"`
	Minutes          float64 `json:"minutes_after_build"` // from the run's first start to its end, with the time in which no worker was there
	RolloutSeconds   float64 `json:"step_seconds_rollout"`
	SandboxSeconds   float64 `json:"step_seconds_sandbox"` // of the rollout, by the share of its time that trajectories waited for tools
	VerifySeconds    float64 `json:"step_seconds_verify"`  // of the rollout, likewise
	ToolCPUSeconds   float64 `json:"step_seconds_tool_cpu"`
	TrainSeconds     float64 `json:"step_seconds_train"`
	Steps            int     `json:"steps"`
	Problems         int     `json:"held_out_problems"`
	SamplesOfProblem int     `json:"samples"`
}

// figures gathers them from a run's results and the timings in the store.
func figures(ctx context.Context, s store.Store, run string, r recipe.Recipe, out workflows.RunResult, took time.Duration) (Figures, error) {
	f := Figures{Minutes: took.Minutes()}.scored(out)
	var kept []string
	for _, stage := range r.Stages {
		kept = append(kept, stage.Kept()...)
	}
	for _, stage := range kept {
		entries, err := s.List(ctx, store.StagePrefix(run, stage)+"timings/")
		if err != nil {
			return f, err
		}
		for _, e := range entries {
			body, _, err := s.Get(ctx, e.Key)
			if err != nil {
				return f, err
			}
			var t activities.Timings
			if err := json.Unmarshal(body, &t); err != nil {
				return f, fmt.Errorf("%s: %w", e.Key, err)
			}
			f.add(t)
		}
	}
	if f.Steps > 0 {
		n := float64(f.Steps)
		for _, v := range []*float64{&f.RolloutSeconds, &f.SandboxSeconds, &f.VerifySeconds, &f.ToolCPUSeconds, &f.TrainSeconds} {
			*v /= n
		}
	}
	return f, nil
}

// scored adds the scores of the first and the last evaluation.
func (f Figures) scored(out workflows.RunResult) Figures {
	if n := len(out.Evals); n > 0 {
		first, last := out.Evals[0], out.Evals[n-1]
		f.PassSFT, f.PassFinal, f.Gain = first.Avg, last.Avg, 100*(last.Avg-first.Avg)
		f.ToolErrorSFT, f.ToolErrorFinal = first.ToolErrorShare, last.ToolErrorShare
		f.Problems, f.SamplesOfProblem = last.Problems, last.Samples
	}
	return f
}

func (f *Figures) add(t activities.Timings) {
	f.Steps++
	f.RolloutSeconds += t.Rollout
	f.TrainSeconds += t.Train
	f.ToolCPUSeconds += t.ToolCPU
	if waited := t.Generate + t.Tools + t.Verify; waited > 0 {
		f.SandboxSeconds += t.Rollout * t.Tools / waited
		f.VerifySeconds += t.Rollout * t.Verify / waited
	}
}

// writeJSON puts figures into a file.
func writeJSON(path string, v any) error {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.AsUser(err)
	}
	return fault.AsUser(os.WriteFile(path, append(body, '\n'), 0o644))
}
