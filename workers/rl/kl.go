package rl

import "math"

// Bounds of the k3 estimate, as in verl: a log ratio beyond 20 nats overflows to no use, and one token must not own the loss.
const (
	maxLogRatio = 20
	maxK3       = 10
)

// K3 estimates KL(policy || reference) at one sampled token from natural-log probabilities: r - log r - 1 with
// r = p_ref / p_policy, never negative (DeepSeekMath Eq 4). As a value it is unbiased with low variance; its gradient is not
// that of the reverse KL.
func K3(logPolicy, logReference float64) float64 {
	d := min(max(logReference-logPolicy, -maxLogRatio), maxLogRatio)
	return min(max(math.Expm1(d)-d, 0), maxK3)
}
