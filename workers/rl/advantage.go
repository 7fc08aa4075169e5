package rl

import (
	"fmt"
	"math"
	"sort"
)

// Baseline names how a group's rewards become advantages.
type Baseline string

// The baselines.
const (
	MeanStd  Baseline = "mean-std" // GRPO, DAPO and rStar2-Agent: (r - mean) / (std + 1e-6), std unbiased (n-1)
	MeanOnly Baseline = "mean"     // Dr.GRPO: r - mean; pair it with the ConstantNorm loss weights
)

// stdEpsilon is the released code's guard against small deviations (verl core_algos). Degenerate groups do not rely on it.
const stdEpsilon = 1e-6

// Advantages gives one advantage per reward, in the same order, valid for every sampled token of that rollout. If all
// rewards are equal, a group of one included, every advantage is exactly 0 and degenerate is true: rounding residue of the
// mean must not become a push of thousands of standard deviations.
func Advantages(rewards []float64, baseline Baseline) (advantages []float64, degenerate bool, err error) {
	sorted := append([]float64(nil), rewards...)
	sort.Float64s(sorted) // sums in value order: the result does not depend on the order of the group
	for _, r := range sorted {
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return nil, false, fmt.Errorf("reward %v cannot be normalised; rewards must be finite", r)
		}
	}
	advantages = make([]float64, len(rewards))
	if len(sorted) == 0 || sorted[0] == sorted[len(sorted)-1] {
		return advantages, true, nil
	}
	mean, std := meanStd(sorted)
	scale := 1.0
	switch baseline {
	case MeanStd, "":
		scale = std + stdEpsilon
	case MeanOnly:
	default:
		return nil, false, fmt.Errorf("baseline %q is not known; use %q or %q", baseline, MeanStd, MeanOnly)
	}
	for i, r := range rewards {
		advantages[i] = (r - mean) / scale
	}
	return advantages, false, nil
}

// meanStd returns mean and unbiased standard deviation of at least two values.
func meanStd(values []float64) (mean, std float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v
	}
	mean /= n
	var sq float64
	for _, v := range values {
		d := v - mean
		sq += float64(d * d)
	}
	return mean, math.Sqrt(sq / (n - 1))
}
