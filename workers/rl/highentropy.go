package rl

import (
	"fmt"
	"math"
	"sort"
)

// HighEntropyMask keeps, of the sampled tokens of one response, the floor(share*n) of highest entropy in the loss (Wang et al.
// 2025, arXiv 2506.01939, Eq 5, whose share is 0.2); earlier tokens win ties. share 1 keeps all. mask is not changed.
func HighEntropyMask(entropy []float32, mask []uint8, share float64) ([]uint8, error) {
	if !(share > 0 && share <= 1) {
		return nil, fmt.Errorf("share of high-entropy tokens is %v, want above 0 and at most 1", share)
	}
	if len(entropy) != len(mask) {
		return nil, fmt.Errorf("%d entropies for a mask of %d tokens; the counts must agree", len(entropy), len(mask))
	}
	kept := make([]uint8, len(mask))
	var sampled []int
	for t, m := range mask {
		if m == 1 {
			if h := float64(entropy[t]); math.IsNaN(h) {
				return nil, fmt.Errorf("entropy of token %d is NaN", t)
			}
			sampled = append(sampled, t)
		}
	}
	sort.SliceStable(sampled, func(a, b int) bool { return entropy[sampled[a]] > entropy[sampled[b]] })
	for _, t := range sampled[:int(share*float64(len(sampled)))] {
		kept[t] = 1
	}
	return kept, nil
}
