package agent

import (
	"context"
	"errors"

	"github.com/restar-rl/restar/workers/sandbox"
)

// Lose gives a trajectory up that the infrastructure keeps from its end: it stops where it is, with a verdict that is neither
// right nor wrong. Its whole group must not train, since the samples that were not lost are no fair draw of it.
func Lose(t Trajectory, cause *InfraError) (Trajectory, error) {
	t.Stop = Lost
	t.Verdict = Verdict{Outcome: Unknown, Reason: valid(cause.Error())}
	t.Reward = 0
	return t, t.Check()
}

// Sound runs the program of no effect in the sandbox as a call would be. It tells a sandbox that is down, when every call
// fails and nothing may be given up, from one that fails on one trajectory's calls alone.
func (a *Agent) Sound(ctx context.Context) error {
	e, err := a.execute(ctx, a.runner, sandbox.Call{ID: "sound", Code: "pass", Limits: a.config.Limits})
	if err == nil && e.result.Status != sandbox.Success {
		err = &InfraError{"running a program of no effect in the sandbox", 1, errors.New("it ended with " + string(e.result.Status))}
	}
	return err
}
