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

// Objective is a loss over the sampled (mask 1) tokens of a batch. With w the weight of a token by Norm, r its ratio by Ratio, A its
// advantage, c its truncated importance weight (1 when off) and kl its KL estimate towards the reference:
//
//	policy gradient: -sum w (c surrogate(r, A) - KLBeta kl)
//	SFT:             -sum w logp
//
// A sequence's ratio, where the advantages of its tokens differ, is a constant for the gradient, as CISPO's clipped one is: a token's advantage
// moves that token's log-prob only (GSPO-token, section 4.3 of arXiv 2507.18071).
type Objective struct {
	Kind      Kind
	Ratio     rl.RatioKind // empty is the token's
	Clip      rl.Clip
	Norm      rl.LossNorm // the denominator; empty is token-mean
	MaxLength int         // the constant of rl.ConstantNorm

	KLBeta      float64        // weight of the KL loss; above 0 every sequence needs RefLogProbs
	KLEstimator rl.KLEstimator // empty is k3
	Importance  float64        // limit of the importance weight; above 0 every sequence needs EngineLogProbs
}

func (o Objective) withDefaults() Objective {
	if o.Ratio == "" {
		o.Ratio = rl.TokenRatio
	}
	if o.KLEstimator == "" {
		o.KLEstimator = rl.K3Estimator
	}
	return o
}

func (o Objective) validate() error {
	if o.Kind != PolicyGradient && o.Kind != SFT {
		return fmt.Errorf("train: objective kind is %q, want %q or %q", o.Kind, PolicyGradient, SFT)
	}
	if err := (rl.Loss{Ratio: o.Ratio, Clip: o.Clip, KLBeta: o.KLBeta, KLEstimator: o.KLEstimator, Importance: o.Importance}).Check(); err != nil {
		return fmt.Errorf("train: objective: %w", err)
	}
	return nil
}

// needs reports what a sequence lacks for the objective.
func (o Objective) needs(s Sequence) error {
	if o.Kind == SFT {
		return nil
	}
	if o.KLBeta > 0 && s.RefLogProbs == nil {
		return fmt.Errorf("%w: sequence of ordinal %d has no reference log-probs, which a KL weight of %v needs", ErrBatch, s.Ordinal, o.KLBeta)
	}
	if o.Importance > 0 && s.EngineLogProbs == nil {
		return fmt.Errorf("%w: sequence of ordinal %d has no engine log-probs, which an importance limit of %v needs", ErrBatch, s.Ordinal, o.Importance)
	}
	return nil
}

// sums are a leaf's or a subtree's part of the metrics.
type sums struct {
	loss, entropy, kl, refKL, mismatch float64
	maxRatio, maxMismatch              float64
	clipLow, clipHigh, clipDual        int
	tokens                             int
}

// join adds the sums of two subtrees, left first.
func (a sums) join(b sums) sums {
	return sums{
		loss: a.loss + b.loss, entropy: a.entropy + b.entropy, kl: a.kl + b.kl, refKL: a.refKL + b.refKL, mismatch: a.mismatch + b.mismatch,
		maxRatio: max(a.maxRatio, b.maxRatio), maxMismatch: max(a.maxMismatch, b.maxMismatch),
		clipLow: a.clipLow + b.clipLow, clipHigh: a.clipHigh + b.clipHigh, clipDual: a.clipDual + b.clipDual, tokens: a.tokens + b.tokens,
	}
}

func (a sums) metrics() Metrics {
	n := float64(max(a.tokens, 1))
	return Metrics{
		Loss: a.loss, RatioMax: a.maxRatio, KL: a.kl / n, RefKL: a.refKL / n, Entropy: a.entropy / n,
		ClipFracLow: float64(a.clipLow) / n, ClipFracHigh: float64(a.clipHigh) / n, ClipFracDual: float64(a.clipDual) / n,
		Mismatch: a.mismatch / n, MismatchMax: a.maxMismatch, Tokens: a.tokens,
	}
}

// coefficients writes dL/dlogp of one sequence's tokens, 0 where they were not sampled, and adds them to the sums.
func (o Objective) coefficients(a *sums, it item, logp, entropy, coef []float32) {
	whole, inside := 0.0, true
	if o.Kind == PolicyGradient && o.Ratio == rl.SequenceRatio {
		whole, inside = rl.MeanLogRatio(logp, it.LogProbs, it.Mask)
	}
	for t, m := range it.Mask {
		if m == 0 {
			continue
		}
		a.tokens++
		a.entropy += float64(entropy[t])
		if o.Kind == SFT {
			a.maxRatio = 1
			a.loss -= float64(it.weight * float64(logp[t]))
			coef[t] = float32(-it.weight)
			continue
		}
		logRatio, free := whole, inside
		if o.Ratio != rl.SequenceRatio {
			logRatio, free = rl.LogRatio(float64(logp[t]), float64(it.LogProbs[t]))
		}
		coef[t] = o.token(a, it, t, float64(logp[t]), logRatio, free)
	}
}

// token adds one sampled token to the sums and returns dL/dlogp. logRatio is that of the token or of its sequence; free is false
// where it was clamped.
func (o Objective) token(a *sums, it item, t int, logp, logRatio float64, free bool) float32 {
	ratio, adv := math.Exp(logRatio), float64(it.advantage(t))
	a.maxRatio = max(a.maxRatio, math.Exp(math.Abs(logRatio)))
	a.kl += ratio - 1 - logRatio
	value, slope := o.surrogate(a, ratio, adv, logp)
	if !free {
		slope = 0
	}
	if o.Importance > 0 {
		c := o.importance(a, it, t)
		value, slope = value*c, slope*c
	}
	if o.KLBeta > 0 {
		kl, dkl := rl.KL(o.KLEstimator, logp, float64(it.RefLogProbs[t]))
		a.refKL += kl
		value, slope = value-o.KLBeta*kl, slope-o.KLBeta*dkl
	}
	a.loss -= float64(it.weight * value)
	return float32(-it.weight * slope)
}

// importance is the token's truncated importance weight. Its log is also the mismatch of engine and trainer.
func (o Objective) importance(a *sums, it item, t int) float64 {
	old, engine := float64(it.LogProbs[t]), float64(it.EngineLogProbs[t])
	d, _ := rl.LogRatio(old, engine)
	a.mismatch += math.Expm1(d) - d
	a.maxMismatch = max(a.maxMismatch, math.Exp(math.Abs(d)))
	return rl.ImportanceWeight(old, engine, o.Importance)
}

// surrogate returns the token's clipped term and its derivative by logp, and counts clipping.
func (o Objective) surrogate(a *sums, ratio, adv, logp float64) (value, slope float64) {
	var side rl.Side
	if o.Ratio == rl.WeightRatio {
		value, slope, side = o.Clip.Weighted(ratio, adv, logp)
	} else {
		value, slope, side = o.Clip.Surrogate(ratio, adv)
	}
	switch side {
	case rl.ClippedHigh:
		a.clipHigh++
	case rl.ClippedLow:
		a.clipLow++
	case rl.ClippedDual:
		a.clipDual++
	case rl.Free:
	}
	return value, slope
}
