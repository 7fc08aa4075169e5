package rl

import (
	"fmt"
	"math"
)

// Clip bounds the ratio r of the policy's probability of a token to that of the policy that sampled it.
type Clip struct {
	Low  float64 // r counts from 1-Low (PPO, GRPO, DAPO and rStar2-Agent: 0.2; GSPO: 3e-4)
	High float64 // r counts up to 1+High (GRPO: 0.2, DAPO and rStar2-Agent: 0.28; GSPO: 4e-4)
	Dual float64 // 0 is off; above 1 bounds the loss of a negative advantage at Dual*A (Ye et al. 2020, Eq 5)
}

// Side says which bound held a token back.
type Side int

// The sides of a clipped token.
const (
	Free        Side = iota
	ClippedLow       // A < 0 and r below 1-Low
	ClippedHigh      // A > 0 and r above 1+High
	ClippedDual      // A < 0 and r above Dual
)

// MaxLogRatio clamps log r before exp: beyond 20 nats the exponential says nothing and may overflow (verl). A token at the
// clamp has no gradient.
const MaxLogRatio = 20

func (c Clip) check() error {
	switch {
	case !(c.Low >= 0 && c.Low <= 1):
		return fmt.Errorf("clip_low is %v, want a number in [0,1]", c.Low)
	case !(c.High >= 0) || math.IsInf(c.High, 0):
		return fmt.Errorf("clip_high is %v, want a finite number of at least 0", c.High)
	case c.Dual != 0 && !(c.Dual > 1 && !math.IsInf(c.Dual, 0)):
		return fmt.Errorf("dual_clip is %v, want 0 (off) or a finite number above 1", c.Dual)
	}
	return nil
}

// Surrogate is min(r A, clip(r, 1-Low, 1+High) A) (PPO Eq 7, DAPO Eq 8), and for A < 0 no less than Dual A. slope is its
// derivative by log r, 0 where a bound holds.
func (c Clip) Surrogate(ratio, advantage float64) (value, slope float64, side Side) {
	free := ratio * advantage
	clipped := c.bound(ratio) * advantage
	switch {
	case clipped < free && advantage > 0:
		return clipped, 0, ClippedHigh
	case clipped < free:
		return clipped, 0, ClippedLow
	case c.Dual != 0 && advantage < 0 && free < c.Dual*advantage:
		return c.Dual * advantage, 0, ClippedDual
	}
	return free, free, Free
}

// Weighted is CISPO's token loss (MiniMax-M1, arXiv 2506.13585, Eq 4): A log p weighted by the clipped ratio, which is a
// constant for the gradient, so that no token loses its gradient. slope is the derivative by log p.
func (c Clip) Weighted(ratio, advantage, logp float64) (value, slope float64, side Side) {
	w := c.bound(ratio)
	switch {
	case w < ratio:
		side = ClippedHigh
	case w > ratio:
		side = ClippedLow
	}
	return w * advantage * logp, w * advantage, side
}

func (c Clip) bound(ratio float64) float64 { return max(1-c.Low, min(1+c.High, ratio)) }
