package activities

import (
	"context"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/problem"
)

// run journals the turns of samples and their ends.
func (s *slice) run(ctx context.Context, tasks []agent.Task, runs int) ([]agent.Unfinished, error) {
	return s.agent.RunAll(ctx, tasks, agent.Many{
		Runs: runs, Wait: sampleWait,
		OnTurn: func(i int, t agent.TurnRecord) error {
			s.progress.step()
			return s.append(turnKey(tasks[i].Address.Sample), t.Encode)
		},
		OnEnd: func(i int, t agent.Trajectory) error { return s.end(ctx, tasks[i].Address.Sample, t) },
	})
}

// tasks are the samples to be run, each from where its journal left it.
func (s *slice) tasks(p problem.Problem, prompt []int32, todo []int) ([]agent.Task, error) {
	tasks := make([]agent.Task, len(todo))
	for i, sample := range todo {
		task := s.task(p, prompt, sample)
		resumed, err := agent.Rebuild(task, s.logs.turns[sample])
		if err != nil {
			return nil, err
		}
		task.Resume = &resumed
		tasks[i] = task
	}
	return tasks, nil
}

// end makes a finished trajectory durable before it is counted.
func (s *slice) end(ctx context.Context, sample int, t agent.Trajectory) error {
	if err := s.append(finalKey(sample), t.Encode); err != nil {
		return err
	}
	if err := s.journal.Flush(ctx); err != nil {
		return err
	}
	s.progress.step()
	return s.logs.add(sample, t)
}
