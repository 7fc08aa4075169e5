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
)

// giveUp ends an attempt whose samples are not all finished. Each is left to the next attempt, unless it has been tried often and
// the sandbox runs other programs: then it is lost, which its record says for ever.
func (s *slice) giveUp(ctx context.Context, todo []int, unfinished []agent.Unfinished) error {
	var left []error
	for i, u := range unfinished {
		if u.Err == nil {
			continue
		}
		var infra *agent.InfraError
		if s.attempt < cmp.Or(s.LoseFrom, lostAttempts) || !errors.As(u.Err, &infra) {
			left = append(left, u.Err)
			continue
		}
		if err := s.agent.Sound(ctx); err != nil {
			left = append(left, u.Err, err)
			continue
		}
		lost, err := agent.Lose(u.Trajectory, infra)
		if err != nil {
			return err
		}
		if err := s.end(ctx, todo[i], lost); err != nil {
			return err
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("attempt %d left samples of %s unfinished: %w", s.attempt, s.group(), errors.Join(left...))
}
