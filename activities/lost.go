package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restar-rl/restar/workers/agent"
)

const (
	// sampleRuns is how often one attempt runs a sample that the infrastructure fails. More is left to the server's retry, which moves
	// the work to another worker.
	sampleRuns = 2
	sampleWait = 200 * time.Millisecond
	// samplePatience is the wall time of a trajectory in the first attempt, two orders of magnitude above a long one on one core. A
	// straggler goes on in another attempt, perhaps elsewhere, with once more of it each time.
	samplePatience = time.Hour
	// lostAttempts is, unless Rollouts.LoseFrom says so, from which attempt on a sample may be lost that the infrastructure fails while the sandbox is sound: the retries
	// before it take two minutes, longer than a worker, a sandbox or a network needs to come back.
	lostAttempts = 10
	// lostProofs is how often it has to fail then, each time after the sandbox ran another program. One failure could be that of a
	// sandbox which came back before it was asked.
	lostProofs = 3
)

// giveUp ends an attempt whose samples are not all finished. Each is left to the next attempt, unless it has been tried often and
// is proven impossible: then it is lost, which its record says for ever.
func (s *slice) giveUp(ctx context.Context, tasks []agent.Task, unfinished []agent.Unfinished) error {
	var left []error
	for i, u := range unfinished {
		if u.Err != nil && s.attempt >= cmp.Or(s.LoseFrom, lostAttempts) {
			var err error
			if u, err = s.prove(ctx, tasks[i], u); err != nil {
				return err
			}
		}
		if u.Err != nil {
			left = append(left, u.Err)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("attempt %d left samples of %s unfinished: %w", s.attempt, s.group(), errors.Join(left...))
}

// prove runs a sample that the infrastructure fails again and again, each time after the sandbox ran another program. It ends
// with the sample finished, or lost, or left to another attempt for a failure that is not its own.
func (s *slice) prove(ctx context.Context, task agent.Task, u agent.Unfinished) (agent.Unfinished, error) {
	for range lostProofs {
		if !agent.IsInfra(u.Err) {
			return u, nil
		}
		if err := s.agent.Sound(ctx); err != nil {
			u.Err = errors.Join(u.Err, err)
			return u, nil
		}
		task.Resume = &u.Trajectory
		again, err := s.run(ctx, []agent.Task{task}, 1)
		if err != nil || again[0].Err == nil {
			return agent.Unfinished{}, err
		}
		u = again[0]
	}
	var infra *agent.InfraError
	if !errors.As(u.Err, &infra) {
		return u, nil
	}
	lost, err := agent.Lose(u.Trajectory, infra)
	if err != nil {
		return u, err
	}
	return agent.Unfinished{}, s.end(ctx, task.Address.Sample, lost)
}
