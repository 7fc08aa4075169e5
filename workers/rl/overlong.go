package rl

import "fmt"

// OverlongPenalty is DAPO's soft overlong punishment (Eq 13), added to the reward of a response of n tokens: 0 up to
// limit-cache, then a straight line down to -1 at limit, and -1 beyond. limit is the generation cap, cache the width of the
// ramp: DAPO uses 20,480 and 4,096.
func OverlongPenalty(n, limit, cache int) (float64, error) {
	if cache < 1 || limit < cache {
		return 0, fmt.Errorf("overlong shaping has limit %d and cache %d; it needs 0 < cache <= limit", limit, cache)
	}
	switch start := limit - cache; {
	case n <= start:
		return 0, nil
	case n <= limit:
		return float64(start-n) / float64(cache), nil
	default:
		return -1, nil
	}
}
