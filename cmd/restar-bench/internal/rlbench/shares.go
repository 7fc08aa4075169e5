package rlbench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/goccy/go-yaml"
	"github.com/restar-rl/restar/cmd/restar-bench/internal/product"
)

// runName is that of the run whose time is shared out.
const runName = "bench-rl"

// Evaluation is no part of what is measured: a few problems are enough.
const evalProblems = 8

// times are what a run says of its own time, as `restar run --figures --curves` writes it; seconds of a mean step.
type times struct {
	Rollout float64 `json:"step_seconds_rollout"` // all of it
	Sandbox float64 `json:"step_seconds_sandbox"`
	Verify  float64 `json:"step_seconds_verify"`
	ToolCPU float64 `json:"step_seconds_tool_cpu"`
	Train   float64 `json:"step_seconds_train"`
	Steps   float64 `json:"steps"`
}

// shares trains a few steps and shares their wall time out. Trajectories overlap, so the wall time of a rollout is split by what
// trajectories waited for: the engine, tools, verdicts.
func (b *bench) shares(ctx context.Context) error {
	base, err := product.ReadBase(b.Recipe)
	if err != nil {
		return err
	}
	recipe, err := base.Derive(product.Change{
		Seed: 1, Stages: yaml.MapSlice{{Key: "steps", Value: b.Steps}},
		Eval: yaml.MapSlice{{Key: "problems", Value: evalProblems}, {Key: "samples", Value: 2}, {Key: "every_steps", Value: 0}},
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(b.Dir); err != nil {
		return err
	}
	if err := product.Prepare(b.Dir, recipe); err != nil {
		return err
	}
	if err := product.Run(ctx, b.Restar, runName, b.Dir, b.out); err != nil {
		return err
	}
	var t times
	var whole struct {
		Seconds float64 `json:"seconds_of_stages"`
	}
	if err := read(filepath.Join(b.Dir, product.FiguresFile), &t); err != nil {
		return err
	}
	if err := read(filepath.Join(b.Dir, product.CurvesFile), &whole); err != nil {
		return err
	}
	return b.share(t, whole.Seconds)
}

func read(path string, into any) error {
	body, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// share sets the figures of a run whose stages took some seconds. The five shares are disjoint and add up to 1.
func (b *bench) share(t times, seconds float64) error {
	if t.Steps < 1 || seconds <= 0 {
		return fmt.Errorf("the run reports %v steps in %v s, want at least one", t.Steps, seconds)
	}
	step := seconds / t.Steps
	f := b.figures
	f["step_seconds"], f["step_seconds_rollout"], f["step_seconds_train"] = step, t.Rollout, t.Train
	f["step_seconds_tool_cpu"] = t.ToolCPU
	f["share_rollout"] = (t.Rollout - t.Sandbox - t.Verify) / step
	f["share_sandbox"], f["share_verify"], f["share_train"] = t.Sandbox/step, t.Verify/step, t.Train/step
	f["share_other"] = 1 - (t.Rollout+t.Train)/step
	f["sandbox_cpu_share"] = t.ToolCPU / step / float64(runtime.NumCPU())
	f["steps"] = t.Steps
	return nil
}
