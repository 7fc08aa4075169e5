package activities

import (
	"fmt"

	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/telemetry"
)

// observed are a stage's rounds as its alarms see them, oldest first.
func observed(all []StepMetrics) []rl.Observation {
	out := make([]rl.Observation, len(all))
	for i, m := range all {
		out[i] = rl.Observation{
			Step: int(m.Step), RewardMean: m.Reward, TruncatedShare: m.TruncatedShare, AllCorrectShare: share(m.AllCorrect, m.Groups),
			Entropy: m.Entropy, CallsMean: m.CallsPerSample, DuplicateShare: m.DuplicateShare, UnknownShare: m.UnknownShare,
		}
	}
	return out
}

// alarms tells, of each limit of a healthy run that a stage crossed, where it first did.
func alarms(stage string, all []StepMetrics) []telemetry.Fact {
	var out []telemetry.Fact
	raised := map[string]bool{}
	history := observed(all)
	for n := range history {
		for _, a := range rl.Alarms(rl.DefaultLimits(), history[:n+1]) {
			if !raised[a.Name] {
				raised[a.Name] = true
				out = append(out, telemetry.Fact{Name: "alarm in " + stage, Value: fmt.Sprintf("%s, first at step %d", a, all[n].Step)})
			}
		}
	}
	return append(append(out, mismatches(stage, all)...), losses(stage, all)...)
}

// skips tells of the steps whose gradient was not finite and which changed no weight.
func skips(stage string, all []StepMetrics) []telemetry.Fact {
	n, first := 0, StepMetrics{}
	for _, m := range all {
		if m.Skipped == "" {
			continue
		}
		if n++; n == 1 {
			first = m
		}
	}
	if n == 0 {
		return nil
	}
	return []telemetry.Fact{{Name: "alarm in " + stage, Value: fmt.Sprintf("%d of %d steps changed no weight, first step %d: %s", n, len(all), first.Step, first.Skipped)}}
}

// losses tells of the groups that were dropped whole, since the infrastructure lost a sample of them for good.
func losses(stage string, all []StepMetrics) []telemetry.Fact {
	lost, round := 0, -1
	for _, m := range all {
		if m.Iteration != round { // the steps of a round share its figures
			lost += m.LostGroups
		}
		round = m.Iteration
	}
	if lost == 0 {
		return nil
	}
	return []telemetry.Fact{{Name: "alarm in " + stage, Value: fmt.Sprintf("%d groups were dropped for a sample that the infrastructure lost", lost)}}
}

// mismatches tells where a policy's first step on its own trajectories had a ratio other than 1: sampler and trainer disagree about
// the same weights, and what follows is not the algorithm that the recipe names.
func mismatches(stage string, all []StepMetrics) []telemetry.Fact {
	round := -1
	for _, m := range all {
		first := m.Iteration != round
		if round = m.Iteration; !first || m.Skipped != "" || m.RatioMax == 1 {
			continue
		}
		return []telemetry.Fact{{Name: "alarm in " + stage, Value: fmt.Sprintf("ratio is %.9g on the policy's own trajectories, want exactly 1, first at step %d", m.RatioMax, m.Step)}}
	}
	return nil
}
