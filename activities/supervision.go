package activities

import (
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/rl"
)

// advantage is a trajectory's: one for all tokens, or one for each of its ids.
type advantage struct {
	of   float32
	each []float32 // nil: of
}

// advantages are those of a group's survivors, whose outcome rewards are given. The group is degenerate if nothing in it differs.
func (c *chooser) advantages(g group, kept []int, rewards []float64) (_ []advantage, degenerate bool, err error) {
	out := make([]advantage, len(kept))
	if c.alg.Supervision == rl.ProcessSupervision {
		degenerate, err = processAdvantages(g, kept, rewards, out)
		return out, degenerate, err
	}
	values, degenerate, err := rl.Advantages(rewards, c.alg.Baseline)
	for i := range values {
		out[i].of = float32(values[i])
	}
	return out, degenerate, err
}

// processAdvantages sets the advantage of every token: the sum of the normalised rewards of the steps that end at or after it
// (DeepSeekMath §4.1.3). A step is an assistant turn.
func processAdvantages(g group, kept []int, rewards []float64, out []advantage) (degenerate bool, err error) {
	steps, lengths := make([][]rl.StepReward, len(kept)), make([]int, len(kept))
	for i, k := range kept {
		steps[i], lengths[i] = turnRewards(&g.all[k], rewards[i]), g.all[k].ResponseLen()
	}
	values, degenerate, err := rl.ProcessAdvantages(steps, lengths)
	if err != nil {
		return false, err
	}
	for i, k := range kept {
		t := &g.all[k]
		out[i].each = make([]float32, len(t.IDs))
		for j, v := range values[i] {
			out[i].each[t.PromptLen+j] = float32(v)
		}
	}
	return degenerate, nil
}

// turnRewards is a process reward that needs no model: a turn earns the share of its tool calls that succeeded, and the last turn the
// rollout's outcome. A turn in between without a call that counts is no step.
func turnRewards(t *agent.Trajectory, outcome float64) []rl.StepReward {
	var steps []rl.StepReward
	for i, turn := range t.Turns {
		end := turn.End - 1 - t.PromptLen
		if i == len(t.Turns)-1 {
			return append(steps, rl.StepReward{End: end, Reward: outcome})
		}
		calls, failed := 0, 0
		for _, call := range turn.Calls {
			if call.Type == agent.NotRun {
				continue
			}
			calls++
			if call.Type.IsError() {
				failed++
			}
		}
		if calls > 0 {
			steps = append(steps, rl.StepReward{End: end, Reward: share(calls-failed, calls)})
		}
	}
	return steps
}
