package train

import (
	"fmt"
	"math"

	"github.com/restar-rl/restar/workers/rl"
)

// Kind is what a step minimises.
type Kind string

// The objectives.
const (
	PolicyGradient Kind = "policy-gradient" // clipped ratio (rStar2-Agent eq. 6, DAPO eq. 8)
	SFT            Kind = "sft"             // negative log-likelihood; log-probs and advantages of the batch are not read
)

// Objective is a loss over the sampled (mask 1) tokens of a batch. With w the weight of a token by Norm, r = exp(logp - behaviour logp)
// and A the sequence's advantage:
//
//	policy gradient: -sum w min(r A, clip(r, 1-ClipLow, 1+ClipHigh) A), and for A < 0 no less than DualClip A
//	SFT:             -sum w logp
type Objective struct {
	Kind      Kind
	ClipLow   float64     // rStar2-Agent and DAPO: 0.2
	ClipHigh  float64     // rStar2-Agent and DAPO: 0.28
	DualClip  float64     // 0 is off; above 1 bounds the loss of tokens with A < 0 (Ye et al. 2020, eq. 5)
	Norm      rl.LossNorm // the denominator; empty is token-mean
	MaxLength int         // the constant of rl.ConstantNorm
}

// maxLogRatio clamps log r before exp: beyond it the exponential says nothing and may overflow. A clamped token has no gradient.
const maxLogRatio = 20

func (o Objective) validate() error {
	switch {
	case o.Kind != PolicyGradient && o.Kind != SFT:
		return fmt.Errorf("train: objective kind is %q, want %q or %q", o.Kind, PolicyGradient, SFT)
	case !(o.ClipLow >= 0 && o.ClipLow <= 1):
		return fmt.Errorf("train: ClipLow is %v, want a number in [0,1]", o.ClipLow)
	case !(o.ClipHigh >= 0) || math.IsInf(o.ClipHigh, 0):
		return fmt.Errorf("train: ClipHigh is %v, want a finite number of at least 0", o.ClipHigh)
	case o.DualClip != 0 && !(o.DualClip > 1 && isFinite(o.DualClip)):
		return fmt.Errorf("train: DualClip is %v, want 0 (off) or a finite number above 1", o.DualClip)
	}
	return nil
}

// sums are a leaf's or a subtree's part of the metrics.
type sums struct {
	loss, entropy, kl float64
	maxRatio          float64
	clipLow, clipHigh int
	tokens            int
}

// join adds the sums of two subtrees, left first.
func (a sums) join(b sums) sums {
	return sums{
		loss: a.loss + b.loss, entropy: a.entropy + b.entropy, kl: a.kl + b.kl, maxRatio: max(a.maxRatio, b.maxRatio),
		clipLow: a.clipLow + b.clipLow, clipHigh: a.clipHigh + b.clipHigh, tokens: a.tokens + b.tokens,
	}
}

func (a sums) metrics() Metrics {
	n := float64(max(a.tokens, 1))
	return Metrics{
		Loss: a.loss, RatioMax: a.maxRatio, KL: a.kl / n, Entropy: a.entropy / n,
		ClipFracLow: float64(a.clipLow) / n, ClipFracHigh: float64(a.clipHigh) / n, Tokens: a.tokens,
	}
}

// token adds one sampled token to the sums and returns dL/dlogp. weight is its weight in the loss.
func (o Objective) token(a *sums, logp, old, entropy, advantage float32, weight float64) float32 {
	a.tokens++
	a.entropy += float64(entropy)
	if o.Kind == SFT {
		a.maxRatio = 1
		a.loss -= float64(weight * float64(logp))
		return float32(-weight)
	}
	difference := float64(logp) - float64(old)
	logRatio := max(-maxLogRatio, min(maxLogRatio, difference))
	ratio, adv := math.Exp(logRatio), float64(advantage)
	a.maxRatio = max(a.maxRatio, math.Exp(math.Abs(logRatio)))
	a.kl += ratio - 1 - logRatio
	value, slope := o.surrogate(a, ratio, adv)
	a.loss -= float64(weight * value)
	if logRatio != difference {
		slope = 0
	}
	return float32(-weight * slope)
}

// surrogate returns the token's clipped r A and its derivative by log r, and counts clipping.
func (o Objective) surrogate(a *sums, ratio, adv float64) (value, slope float64) {
	free := ratio * adv
	clipped := max(1-o.ClipLow, min(1+o.ClipHigh, ratio)) * adv
	switch {
	case clipped < free && adv > 0:
		a.clipHigh++
		return clipped, 0
	case clipped < free:
		a.clipLow++
		return clipped, 0
	case o.DualClip != 0 && adv < 0 && free < o.DualClip*adv:
		return o.DualClip * adv, 0
	}
	return free, free
}
