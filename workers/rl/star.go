package rl

import (
	"fmt"
	"math"
)

// KeepCorrect is the filter of rejection-sampling fine-tuning and STaR (Zelikman et al. 2022, Alg 1, line 5): the samples of one
// problem that are right train, the others do not. text(i) identifies a sample's content, and of equal contents the
// first is kept (RFT, Yuan et al. 2023, §3.3: distinct paths); limit bounds how many of a problem train, lowest Index first, 0 is all.
// Positions in group are returned, ascending by Index.
func KeepCorrect(group []Sample, text func(i int) string, limit int) ([]int, error) {
	if limit < 0 {
		return nil, fmt.Errorf("limit of correct samples a problem is %d, want 0 (all) or more", limit)
	}
	sorted, err := byIndex(group)
	if err != nil {
		return nil, err
	}
	at := make(map[int]int, len(group))
	for i, s := range group {
		at[s.Index] = i
	}
	seen := map[string]bool{}
	var kept []int
	for _, s := range sorted {
		i := at[s.Index]
		if !s.Positive() || seen[text(i)] || (limit > 0 && len(kept) == limit) {
			continue
		}
		seen[text(i)] = true
		kept = append(kept, i)
	}
	return kept, nil
}

// STaR's schedule: 40 fine-tuning steps in the first iteration, 1.2 times as many in each that follows (§4.1).
const (
	STaRFirstSteps = 40
	STaRGrowth     = 1.2
)

// STaRSteps is the number of fine-tuning steps of an iteration, counted from 1, rounded down: the paper's thirtieth has 7,912 (App H).
func STaRSteps(iteration, first int, growth float64) (int, error) {
	if iteration < 1 || first < 1 || !(growth >= 1) || math.IsInf(growth, 0) {
		return 0, fmt.Errorf("iteration %d of first %d steps growing by %v; want iteration and steps of at least 1, growth of at least 1", iteration, first, growth)
	}
	steps := float64(first) * math.Pow(growth, float64(iteration-1))
	if steps > math.MaxInt32 {
		return 0, fmt.Errorf("iteration %d asks for %.3g steps; end the run or lower the growth of %v", iteration, steps, growth)
	}
	return int(steps), nil
}

// STaRTotal is the number of fine-tuning steps of the first iterations together.
func STaRTotal(iterations, first int, growth float64) (int, error) {
	total := 0
	for i := 1; i <= iterations; i++ {
		n, err := STaRSteps(i, first, growth)
		if total += n; err != nil || total > math.MaxInt32 {
			return 0, fmt.Errorf("%d iterations ask for more than %d steps; end the run or lower the growth of %v", iterations, math.MaxInt32, growth)
		}
	}
	return total, nil
}

// STaRRound is the part of n problems that an iteration, counted from 1, samples: from an ordinal of their shuffled order on, so many
// prompts. An epoch of that order has n ordinals, and a round lies within one, so no round has a problem twice. prompts 0 is all.
func STaRRound(iteration, prompts, n int) (first, count int) {
	if prompts == 0 || prompts > n {
		prompts = n
	}
	if prompts == 0 {
		return 0, 0
	}
	rounds := n / prompts // of an epoch; its rest comes in others
	return (iteration-1)/rounds*n + (iteration-1)%rounds*prompts, prompts
}

// STaREnds tells by which rule STaR is over: "plateau", "iterations", or "" while it goes on. scores begin with the base's.
func STaREnds(scores []float64, iterations, window int, tolerance float64) string {
	switch {
	case Plateau(scores, window, tolerance):
		return "plateau"
	case len(scores) > iterations:
		return "iterations"
	}
	return ""
}

// Plateau says that the last window of scores brings no more than tolerance over the best before it: STaR ends there and
// reports the best.
func Plateau(scores []float64, window int, tolerance float64) bool {
	if window < 1 || len(scores) <= window {
		return false
	}
	before, recent := scores[:len(scores)-window], scores[len(scores)-window:]
	return recent[Best(recent)] <= before[Best(before)]+tolerance
}
