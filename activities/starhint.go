package activities

import (
	"slices"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/rl"
)

// groupOf is a prompt's samples as the rules see them. known is false if a verdict is missing: the group's rewards are not known.
func groupOf(ordinal int, all []agent.Trajectory) (g group, known bool) {
	g = group{ordinal: ordinal, all: all, class: rl.GroupEmpty}
	for i := range all {
		if all[i].Verdict.Outcome == agent.Unknown {
			return g, false
		}
		g.samples = append(g.samples, sampleOf(i, &all[i]))
	}
	g.class = rl.Classify(g.samples)
	return g, true
}

// unhint gives what trains of a trajectory another prompt: what came after the prompt stays as it was sampled.
func unhint(t *agent.Trajectory, prompt []int32) {
	n := t.PromptLen
	t.IDs = slices.Concat(prompt, t.IDs[n:])
	t.Mask = slices.Concat(make([]uint8, len(prompt)), t.Mask[n:])
	t.LogProbs = slices.Concat(make([]float32, len(prompt)), t.LogProbs[n:])
	t.PromptLen = len(prompt)
}
