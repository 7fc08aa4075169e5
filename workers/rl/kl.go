package rl

import (
	"fmt"
	"math"
)

// KLEstimator names an estimate of KL(policy || reference) at one sampled token.
type KLEstimator string

// The estimators (Schulman 2020). With d = log p_ref - log p: k1 = -d, k2 = d*d/2, k3 = exp(d) - d - 1. As values k1 and k3 are
// unbiased; as losses k2 has the gradient of the reverse KL and k3, which DeepSeekMath uses (Eq 4), has not.
const (
	K1Estimator KLEstimator = "k1"
	K2Estimator KLEstimator = "k2"
	K3Estimator KLEstimator = "k3"
)

// maxK3 bounds the k3 estimate, as in verl: one token must not own the loss.
const maxK3 = 10

// K3 estimates KL(policy || reference) at one sampled token from natural-log probabilities: r - log r - 1 with
// r = p_ref / p_policy, never negative (DeepSeekMath Eq 4). As a value it is unbiased with low variance; its gradient is not
// that of the reverse KL.
func K3(logPolicy, logReference float64) float64 {
	d, _ := LogRatio(logReference, logPolicy)
	return min(max(math.Expm1(d)-d, 0), maxK3)
}

// KL returns the estimate and its derivative by the policy's log-probability, 0 where a clamp holds. k1 as a loss has the
// derivative 1 whatever the policy, whose expectation is 0: it measures and does not regularise.
func KL(e KLEstimator, logPolicy, logReference float64) (value, slope float64) {
	d, inside := LogRatio(logReference, logPolicy)
	switch e {
	case K1Estimator:
		value, slope = -d, 1
	case K2Estimator:
		value, slope = d*d/2, -d
	default:
		value, slope = K3(logPolicy, logReference), -math.Expm1(d)
		inside = inside && value < maxK3
	}
	if !inside {
		slope = 0
	}
	return value, slope
}

func (e KLEstimator) check() error {
	switch e {
	case K1Estimator, K2Estimator, K3Estimator:
		return nil
	}
	return fmt.Errorf("kl_estimator is %q, want %q, %q or %q", e, K3Estimator, K2Estimator, K1Estimator)
}
