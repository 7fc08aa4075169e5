package agent

import (
	"fmt"
	"slices"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
)

// Task asks for one trajectory.
type Task struct {
	Problem string         // id of the problem
	Prompt  []int32        // ids up to and including the opening <reason>
	Seed    uint64         // of the run
	Address philox.Address // purpose rollout, eval or filter; stage, iteration, ordinal and sample; turn and token 0

	MaxTokens   int     // response budget: sampled and tool tokens
	MaxTurns    int     // assistant turns
	Temperature float32 // 0 is greedy
	Version     string  // weights that must sample it; "" accepts any one version
	Group       string  // trajectories with the same prompt share its KV cache under this name

	Patience time.Duration // wall time of one Run, after which the trajectory waits to be run again; 0 is no bound

	Judge  Judge
	Resume *Trajectory // continue from here (Rebuild); nil starts at the prompt
}

// Key names the trajectory within its run: purpose, stage, iteration, ordinal and sample.
func (t Task) Key() string {
	a := t.Address
	return fmt.Sprintf("%d/%d/%d/%d/%d", a.Purpose, a.Stage, a.Iteration, a.Ordinal, a.Sample)
}

func (t Task) check() error {
	switch {
	case len(t.Prompt) == 0:
		return fmt.Errorf("task %s has an empty prompt", t.Key())
	case t.MaxTokens < 1 || t.MaxTurns < 1:
		return fmt.Errorf("task %s allows %d tokens and %d turns; both must be at least 1", t.Key(), t.MaxTokens, t.MaxTurns)
	case t.Patience < 0:
		return fmt.Errorf("task %s has patience %v; it must not be negative", t.Key(), t.Patience)
	case t.Temperature < 0:
		return fmt.Errorf("task %s has temperature %v; it must not be negative", t.Key(), t.Temperature)
	case !t.Address.WithTurn(t.MaxTurns).WithToken(t.MaxTokens).Valid() || t.Address.Turn != 0 || t.Address.Token != 0:
		return fmt.Errorf("task %s has an address out of range: %+v with %d turns and %d tokens", t.Key(), t.Address, t.MaxTurns, t.MaxTokens)
	case t.Judge == nil:
		return fmt.Errorf("task %s has no judge", t.Key())
	}
	return nil
}

// begin returns the trajectory to grow: the prompt alone, or a copy of the one to continue.
func (t Task) begin() (Trajectory, error) {
	if err := t.check(); err != nil {
		return Trajectory{}, err
	}
	if t.Resume == nil {
		return Rebuild(t, nil)
	}
	r := *t.Resume
	if r.Key != t.Key() || r.PromptLen != len(t.Prompt) || !slices.Equal(r.IDs[:min(r.PromptLen, len(r.IDs))], t.Prompt) {
		return Trajectory{}, fmt.Errorf("task %s cannot continue trajectory %s: key or prompt differ", t.Key(), r.Key)
	}
	r.IDs, r.Mask, r.LogProbs, r.Entropy = slices.Clone(r.IDs), slices.Clone(r.Mask), slices.Clone(r.LogProbs), slices.Clone(r.Entropy)
	r.Turns = slices.Clone(r.Turns)
	return r, r.Check()
}

// purposeShift puts the task's own purpose above the call's position in the token field of a tool seed's address, so that a
// rollout and an evaluation of the same coordinates draw different seeds.
const purposeShift = 16

// toolSeed is the seed that call number call of a turn sees.
func (t Task) toolSeed(turn, call int) uint64 {
	a := t.Address.WithTurn(turn)
	a.Purpose, a.Token = philox.Tool, int(t.Address.Purpose)<<purposeShift|call
	return philox.NewKey(t.Seed).Uint64(a)
}
