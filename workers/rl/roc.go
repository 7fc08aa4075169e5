package rl

import (
	"fmt"
	"math"
	"sort"
)

// Method names a rule that reduces a group to its training samples.
type Method string

// The selection rules.
const (
	RoCPaper    Method = "paper" // Resample-on-Correct as printed in rStar2-Agent §2.2.3
	RoCReleased Method = "code"  // the rule of the released code, deterministic
	KeepAll     Method = "all"   // plain GRPO and DAPO: every rollout trains
)

// DefaultPenaltyEpsilon keeps the weight 1/(p_total+eps) of a spotless rollout finite. It is far below the smallest
// non-zero penalty (one error among thousands of calls), so spotless rollouts go first, as the paper's inverse
// proportionality asks.
const DefaultPenaltyEpsilon = 1e-6

// SelectOptions configures Select. The zero value is the paper's rule without minimums.
type SelectOptions struct {
	Method        Method  // "" means RoCPaper
	LegacyPenalty bool    // read LegacyText instead of the structured counts
	MinPositive   int     // keep at least so many positives where they exist (released script: 2); 0 = off
	MinNegative   int     // keep at least so many negatives where they exist (released script: 2); 0 = off
	Epsilon       float64 // 0 means DefaultPenaltyEpsilon
}

// Reason says why a sample or a whole group does not train.
type Reason string

// Reasons of removal.
const (
	PositiveNotSelected Reason = "positive_not_selected"
	NegativeNotSelected Reason = "negative_not_selected"
	GroupTooSmall       Reason = "group_smaller_than_target"
)

// Drop is one sample left out, and why.
type Drop struct {
	Index  int
	Reason Reason
}

// Selection is the outcome for one group. Kept and Dropped are in ascending Index order and together hold every sample.
type Selection struct {
	Kept    []int
	Dropped []Drop
}

// Select reduces a group of M samples to target samples (2G to G in the paper). M == target keeps all; M < target drops the
// whole group, never part of it; KeepAll ignores target. uniform(i) in [0,1) is the draw of the sample whose Index is i.
func Select(group []Sample, target int, opt SelectOptions, uniform func(i int) float64) (Selection, error) {
	sorted, err := byIndex(group)
	if err != nil {
		return Selection{}, err
	}
	if err := opt.check(target); err != nil {
		return Selection{}, err
	}
	if opt.Method == KeepAll || len(sorted) == target {
		return keep(sorted, indexSet(sorted)), nil
	}
	if len(sorted) < target {
		return dropGroup(sorted), nil
	}
	positives, negatives := split(sorted)
	p, z := opt.quota(len(positives), len(negatives), target)
	chosen := indexSet(opt.choosePositives(positives, p, uniform))
	for _, s := range opt.chooseNegatives(negatives, z, uniform) {
		chosen[s.Index] = true
	}
	return keep(sorted, chosen), nil
}

func (o SelectOptions) check(target int) error {
	switch o.Method {
	case KeepAll:
		return nil
	case "", RoCPaper, RoCReleased:
	default:
		return fmt.Errorf("selection method %q is not known; use %q, %q or %q", o.Method, RoCPaper, RoCReleased, KeepAll)
	}
	if target < 1 {
		return fmt.Errorf("target group size is %d; it must be at least 1", target)
	}
	if o.MinPositive < 0 || o.MinNegative < 0 || o.MinPositive+o.MinNegative > target {
		return fmt.Errorf("minimums of %d positives and %d negatives do not fit a target of %d", o.MinPositive, o.MinNegative, target)
	}
	return nil
}

func split(sorted []Sample) (positives, negatives []Sample) {
	for _, s := range sorted {
		if s.Positive() {
			positives = append(positives, s)
		} else {
			negatives = append(negatives, s)
		}
	}
	return positives, negatives
}

// quota gives the numbers of positives p and negatives z to keep of a positives and b negatives; p + z == target.
//
// Paper: z = floor(b*G/M), which is floor(b/2) for M = 2G, and p = G - z = ceil(a*G/M). Released code: z and p are rounded
// half to even; for an odd target those may miss the sum by one, and then p gives way. The minimums follow in both, negatives
// first. Without a minimum a group with a single negative loses it in the paper's rule and trains with zero advantage.
func (o SelectOptions) quota(a, b, target int) (p, z int) {
	share := float64(b) * float64(target) / float64(a+b)
	z = int(math.Floor(share))
	if o.Method == RoCReleased {
		z = int(math.RoundToEven(share))
	}
	p = target - z
	if least := min(o.MinNegative, b); z <= least {
		z, p = least, target-least
	}
	if least := min(o.MinPositive, a); p <= least {
		p, z = least, target-least
	}
	return p, z
}

func (o SelectOptions) penalty(s Sample) float64 {
	if o.LegacyPenalty {
		return LegacyPenalty(s).Total()
	}
	return PaperPenalty(s).Total()
}

// choosePositives keeps n positives. Paper: sampled without replacement with weights 1/(p_total+eps). Released code: the n
// smallest penalties, ties in sample order.
func (o SelectOptions) choosePositives(positives []Sample, n int, uniform func(i int) float64) []Sample {
	if o.Method == RoCReleased {
		return smallest(positives, n, o.penalty)
	}
	eps := o.Epsilon
	if eps == 0 {
		eps = DefaultPenaltyEpsilon
	}
	return smallest(positives, n, func(s Sample) float64 { return arrival(uniform(s.Index), 1/(o.penalty(s)+eps)) })
}

// chooseNegatives keeps n negatives. Paper: uniformly, following their own distribution. Released code: the first n in sample
// order.
func (o SelectOptions) chooseNegatives(negatives []Sample, n int, uniform func(i int) float64) []Sample {
	if o.Method == RoCReleased {
		return negatives[:n]
	}
	return smallest(negatives, n, func(s Sample) float64 { return arrival(uniform(s.Index), 1) })
}

// arrival turns a uniform draw into an exponential arrival time of the given rate. Taking the n earliest arrivals is weighted
// sampling without replacement (Efraimidis and Spirakis 2006), and needs one draw per sample whatever the company.
func arrival(u, rate float64) float64 { return -math.Log1p(-u) / rate }

// smallest returns the n samples of smallest key; ties keep their order.
func smallest(samples []Sample, n int, key func(Sample) float64) []Sample {
	keys := make([]float64, len(samples))
	order := make([]int, len(samples))
	for i, s := range samples {
		keys[i], order[i] = key(s), i
	}
	sort.SliceStable(order, func(a, b int) bool { return keys[order[a]] < keys[order[b]] })
	chosen := make([]Sample, n)
	for i := range chosen {
		chosen[i] = samples[order[i]]
	}
	return chosen
}

func indexSet(samples []Sample) map[int]bool {
	set := make(map[int]bool, len(samples))
	for _, s := range samples {
		set[s.Index] = true
	}
	return set
}

func keep(sorted []Sample, chosen map[int]bool) Selection {
	var sel Selection
	for _, s := range sorted {
		switch {
		case chosen[s.Index]:
			sel.Kept = append(sel.Kept, s.Index)
		case s.Positive():
			sel.Dropped = append(sel.Dropped, Drop{s.Index, PositiveNotSelected})
		default:
			sel.Dropped = append(sel.Dropped, Drop{s.Index, NegativeNotSelected})
		}
	}
	return sel
}

func dropGroup(sorted []Sample) Selection {
	var sel Selection
	for _, s := range sorted {
		sel.Dropped = append(sel.Dropped, Drop{s.Index, GroupTooSmall})
	}
	return sel
}
