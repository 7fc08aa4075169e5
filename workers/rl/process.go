package rl

import "fmt"

// StepReward is a process reward: the step that ends at token End (inclusive, counted within the response) earned Reward.
type StepReward struct {
	End    int
	Reward float64
}

// ProcessAdvantages is DeepSeekMath's process supervision (§4.1.3): step rewards are normalised by mean and standard
// deviation over all steps of the whole group, and a token's advantage is the sum of the normalised rewards of the steps that
// end at or after it. steps[i] are the steps of response i with ascending End, lengths[i] its token count.
// The group is degenerate, and every advantage 0, if all its steps earned the same.
func ProcessAdvantages(steps [][]StepReward, lengths []int) (_ [][]float64, degenerate bool, err error) {
	if len(steps) != len(lengths) {
		return nil, false, fmt.Errorf("%d responses have steps but %d have lengths; the counts must agree", len(steps), len(lengths))
	}
	var all []float64
	for _, response := range steps {
		for _, s := range response {
			all = append(all, s.Reward)
		}
	}
	normalised, degenerate, err := Advantages(all, MeanStd)
	if err != nil {
		return nil, false, err
	}
	out := make([][]float64, len(steps))
	for i, response := range steps {
		if out[i], err = suffixSums(response, normalised[:len(response)], lengths[i]); err != nil {
			return nil, false, fmt.Errorf("response %d: %w", i, err)
		}
		normalised = normalised[len(response):]
	}
	return out, degenerate, nil
}

func suffixSums(steps []StepReward, rewards []float64, length int) ([]float64, error) {
	sums := make([]float64, length)
	last := length
	var sum float64
	t := length - 1
	for j := len(steps) - 1; j >= 0; j-- {
		end := steps[j].End
		if end < 0 || end >= last {
			return nil, fmt.Errorf("step %d ends at token %d; ends must ascend within [0, %d)", j, end, length)
		}
		for ; t > end; t-- {
			sums[t] = sum
		}
		sum += rewards[j]
		last = end
	}
	for ; t >= 0; t-- {
		sums[t] = sum
	}
	return sums, nil
}
