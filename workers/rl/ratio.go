package rl

import (
	"fmt"
	"math"
)

// RatioKind names what the clipped ratio is a ratio of.
type RatioKind string

// The ratios.
const (
	TokenRatio    RatioKind = "token"    // p(token) / p_old(token): PPO, GRPO, DAPO, rStar2-Agent
	SequenceRatio RatioKind = "sequence" // GSPO: the geometric mean of the sequence's token ratios
	WeightRatio   RatioKind = "weight"   // CISPO: the token ratio as a constant weight of log p
)

// LogRatio returns log p - log q clamped to MaxLogRatio, and whether the clamp left it alone.
func LogRatio(logp, logq float64) (logRatio float64, inside bool) {
	d := logp - logq
	logRatio = max(-MaxLogRatio, min(MaxLogRatio, d))
	return logRatio, logRatio == d
}

// MeanLogRatio is the log of GSPO's sequence ratio s = (p(y)/p_old(y))^(1/|y|) (arXiv 2507.18071, Eq 7) over the sampled
// tokens of one sequence: the mean of their log ratios, clamped. A sequence without sampled tokens has ratio 1.
func MeanLogRatio(logp, old []float32, mask []uint8) (logRatio float64, inside bool) {
	sum, n := 0.0, 0
	for t, m := range mask {
		if m == 1 {
			sum += float64(logp[t]) - float64(old[t])
			n++
		}
	}
	if n == 0 {
		return 0, true
	}
	return LogRatio(sum/float64(n), 0)
}

// ImportanceWeight is the truncated importance weight min(p_old/p_engine, limit) of a token that an engine with other
// numerics sampled (truncated importance sampling, Ionides 2008; Yao et al. 2025 use a limit of 2). It multiplies the token's loss
// and carries no gradient.
func ImportanceWeight(logOld, logEngine, limit float64) float64 {
	r, _ := LogRatio(logOld, logEngine)
	return min(math.Exp(r), limit)
}

// SequenceMismatch is the geometric mean of p_old/p_engine over sampled tokens, as a log: the alarm and the rejection of
// whole sequences whose engine and trainer disagree.
func SequenceMismatch(old, engine []float32, mask []uint8) float64 {
	r, _ := MeanLogRatio(old, engine, mask)
	return r
}

func (k RatioKind) check() error {
	switch k {
	case TokenRatio, SequenceRatio, WeightRatio:
		return nil
	}
	return fmt.Errorf("ratio is %q, want %q, %q or %q", k, TokenRatio, SequenceRatio, WeightRatio)
}
