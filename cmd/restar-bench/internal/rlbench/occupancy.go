package rlbench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
	"golang.org/x/sync/errgroup"
)

// toolWait is how long a tool of the comparison takes.
const toolWait = 50 * time.Millisecond

// waiting is a tool in process that does nothing but take its time. What it answers does not depend on it, so the trajectories with
// and without a wait are the same to the bit.
type waiting struct{ wait time.Duration }

// Run implements agent.Runner.
func (w waiting) Run(ctx context.Context, c sandbox.Call) (sandbox.Result, error) {
	if w.wait > 0 {
		timer := time.NewTimer(w.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return sandbox.Result{}, context.Cause(ctx)
		}
	}
	return sandbox.Result{Status: sandbox.Success, Stdout: "42\n", StdoutBytes: 3}, nil
}

// loop is the agent loop of one round as a rollout worker runs it.
type loop struct {
	rec    recipe.Recipe
	tok    *tokenizer.Tokenizer
	engine *engine.Engine
	tasks  [][]agent.Task // by slice
}

// occupancy compares the tokens a second of whole rounds whose tools take 50 ms and no time at all.
func (b *bench) occupancy(ctx context.Context) error {
	l, err := b.loop()
	if err != nil {
		return err
	}
	defer l.engine.Close()
	rates := map[time.Duration]float64{}
	var tokens, calls [2]int
	for round := range b.Rounds + 1 {
		for i, wait := range []time.Duration{0, toolWait} {
			began := time.Now()
			if tokens[i], calls[i], err = l.round(ctx, wait); err != nil {
				return err
			}
			if round > 0 { // the first one warms up
				rates[wait] = max(rates[wait], float64(tokens[i])/time.Since(began).Seconds())
			}
		}
		if tokens[0] != tokens[1] || calls[0] != calls[1] {
			return fmt.Errorf("%d tokens and %d calls without a wait, %d and %d with one: trajectories must not depend on it", tokens[0], calls[0], tokens[1], calls[1])
		}
	}
	if calls[0] == 0 {
		return errors.New("the model calls no tool; there is nothing to wait for")
	}
	f := b.figures
	f["agent_tokens_per_s_0ms_tools"], f["agent_tokens_per_s_50ms_tools"] = rates[0], rates[toolWait]
	f["occupancy_50ms_tools"] = rates[toolWait] / rates[0]
	f["agent_calls"], f["agent_trajectories"] = float64(calls[0]), float64(len(l.tasks)*activities.SliceSamples)
	return nil
}

// loop opens the model that the run left, with an engine of the size that workers give it.
func (b *bench) loop() (*loop, error) {
	rec, err := recipe.Read(b.Recipe)
	if err != nil {
		return nil, err
	}
	m, err := model.Load(b.model(), model.WithPrecision(model.Precision(rec.Precision)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no model in %s; run the section shares first", match.ErrInput, b.model())
	}
	if err != nil {
		return nil, err
	}
	l := &loop{rec: rec}
	if l.tok, err = tokenizer.Load(b.model()); err != nil {
		return nil, err
	}
	problems, _, err := problem.ReadFile(rec.Data.Problems)
	if err != nil {
		return nil, err
	}
	if l.engine, err = engine.New(m, "bench", engine.Options{Blocks: workers.DefaultKVBytes / m.BlockBytes()}); err != nil {
		return nil, err
	}
	return l, l.plan(problems)
}

// plan makes the tasks of a round of the recipe's first stage.
func (l *loop) plan(problems []problem.Problem) error {
	st := l.rec.Stages[0]
	if len(problems) < st.Prompts {
		return fmt.Errorf("%d problems, want the %d of a round", len(problems), st.Prompts)
	}
	wrong := func(context.Context, string) (agent.Verdict, error) { return agent.Verdict{Outcome: agent.Wrong}, nil }
	for i, p := range problems[:st.Prompts] {
		prompt := activities.Template(l.rec).PromptIDs(l.tok, p.Problem)
		for first := 0; first < st.Samples; first += activities.SliceSamples {
			var slice []agent.Task
			for s := first; s < min(st.Samples, first+activities.SliceSamples); s++ {
				slice = append(slice, agent.Task{
					Problem: p.ID, Prompt: prompt, Seed: l.rec.Seed, Address: philox.Address{Purpose: philox.Rollout, Ordinal: i, Sample: s},
					MaxTokens: st.ResponseTokens, MaxTurns: st.Turns, Temperature: 1, Group: p.ID, Judge: wrong,
				})
			}
			l.tasks = append(l.tasks, slice)
		}
	}
	return nil
}

// round samples every trajectory: slice by slice, as many slices at once as a worker takes.
func (l *loop) round(ctx context.Context, wait time.Duration) (tokens, calls int, err error) {
	a, err := agent.New(l.engine, waiting{wait}, l.tok, activities.AgentConfig(l.rec))
	if err != nil {
		return 0, 0, err
	}
	counts := make([]agent.Counts, len(l.tasks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers.SlicesAtOnce)
	for i, slice := range l.tasks {
		group.Go(func() error {
			ended := make([]agent.Counts, len(slice))
			unfinished, err := a.RunAll(ctx, slice, agent.Many{Runs: 1, OnEnd: func(j int, t agent.Trajectory) error {
				ended[j] = t.Counts()
				return nil
			}})
			for j, u := range unfinished {
				err = errors.Join(err, u.Err)
				counts[i].Sampled, counts[i].Calls = counts[i].Sampled+ended[j].Sampled, counts[i].Calls+ended[j].Calls
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	for _, c := range counts {
		tokens, calls = tokens+c.Sampled, calls+c.Calls
	}
	return tokens, calls, nil
}
