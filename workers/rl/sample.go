package rl

import (
	"fmt"
	"math"
	"sort"
)

// Sample is what the rules need to know about one rollout of a group.
type Sample struct {
	Index  int     // position of the rollout in its group; the address of its random choices
	Reward float64 // outcome reward, finite; above 0 means positive

	Calls      int // tool calls that count: infrastructure failures are left out
	CallErrors int // of those, parse errors, unknown tools, execution errors and time-outs

	AnswerOpen  int // number of "<answer>" in the model's own text
	AnswerClose int // number of "</answer>" in the model's own text
	AnswerPairs int // number of closed <answer>...</answer> blocks
	Turns       int // assistant turns, the first one included

	Truncated  bool   // the rollout ran out of tokens or turns
	LegacyText string // decoded response with markers; read by the legacy penalties only
}

// Positive reports whether the sample counts as a success (reward above 0).
func (s Sample) Positive() bool { return s.Reward > 0 }

// byIndex returns a copy of the group in ascending Index order after checking that it is a group: indices differ and
// rewards are finite.
func byIndex(group []Sample) ([]Sample, error) {
	sorted := append([]Sample(nil), group...)
	sort.Slice(sorted, func(a, b int) bool { return sorted[a].Index < sorted[b].Index })
	for i, s := range sorted {
		if i > 0 && sorted[i-1].Index == s.Index {
			return nil, fmt.Errorf("group holds sample index %d twice; every rollout of a group needs its own index", s.Index)
		}
		if math.IsNaN(s.Reward) || math.IsInf(s.Reward, 0) {
			return nil, fmt.Errorf("sample %d has reward %v; rewards must be finite", s.Index, s.Reward)
		}
		if s.CallErrors < 0 || s.CallErrors > s.Calls {
			return nil, fmt.Errorf("sample %d counts %d call errors of %d calls; errors must lie in [0, calls]",
				s.Index, s.CallErrors, s.Calls)
		}
	}
	return sorted, nil
}

// GroupClass says whether a group carries a learning signal.
type GroupClass string

// The classes of a group. Only a mixed group has a non-zero advantage.
const (
	GroupMixed      GroupClass = "mixed"
	GroupEmpty      GroupClass = "empty"
	GroupAllZero    GroupClass = "equal_reward_all_zero"
	GroupAllNonzero GroupClass = "equal_reward_all_nonzero"
)

// Classify sorts a group by its rewards: groups whose rewards are all equal are rejected before selection, without refill
// (rStar2-Agent §4.3; spec of the released code: reject_equal_reward). An empty group has no rewards to compare.
func Classify(group []Sample) GroupClass {
	if len(group) == 0 {
		return GroupEmpty
	}
	first := group[0].Reward
	for _, s := range group[1:] {
		if s.Reward != first {
			return GroupMixed
		}
	}
	if first == 0 {
		return GroupAllZero
	}
	return GroupAllNonzero
}
