package rl

import (
	"math"
	"strings"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

// slopeOf is a central difference by the log-probability.
func slopeOf(f func(logp float64) float64, at float64) float64 {
	const h = 1e-6
	return (f(at+h) - f(at-h)) / (2 * h)
}

func TestTrap10EveryKLEstimateHasTheSlopeOfItsValue(t *testing.T) {
	for _, e := range []KLEstimator{K2Estimator, K3Estimator} {
		for _, ref := range []float64{-0.2, -1, -2.5} {
			_, slope := KL(e, -1, ref)
			want := slopeOf(func(lp float64) float64 { v, _ := KL(e, lp, ref); return v }, -1)
			if math.Abs(slope-want) > 1e-6 {
				t.Errorf("%s towards %v: slope %v, difference %v", e, ref, slope, want)
			}
		}
	}
	if v, s := KL(K1Estimator, -1, -1.5); v != 0.5 || s != 1 {
		t.Errorf("k1 is %v with slope %v, want 0.5 and 1", v, s)
	}
	if v, s := KL(K3Estimator, -100, -1); v != maxK3 || s != 0 {
		t.Errorf("clamped k3 is %v with slope %v, want %v and 0", v, s, float64(maxK3))
	}
}

// The mean of k3 over samples of the policy is the KL divergence itself.
func TestTrap10K1AndK3AreUnbiasedValues(t *testing.T) {
	p, q := []float64{0.5, 0.3, 0.2}, []float64{0.2, 0.5, 0.3}
	var exact, k1, k3 float64
	for i := range p {
		exact += p[i] * math.Log(p[i]/q[i])
		a, _ := KL(K1Estimator, math.Log(p[i]), math.Log(q[i]))
		b, _ := KL(K3Estimator, math.Log(p[i]), math.Log(q[i]))
		k1, k3 = k1+p[i]*a, k3+p[i]*b
	}
	if !near(k1, exact) || !near(k3, exact) {
		t.Errorf("k1 %v, k3 %v, KL %v", k1, k3, exact)
	}
}

func TestSequenceRatioIsTheGeometricMeanOfSampledTokens(t *testing.T) {
	logp, old := []float32{-9, -1, -2, -3, -5}, []float32{-1, -1.5, -2.25, -2, -1}
	got, inside := MeanLogRatio(logp, old, []uint8{0, 1, 1, 1, 0})
	if want := (0.5 + 0.25 - 1) / 3; !near(got, want) || !inside {
		t.Errorf("log ratio %v, want %v", got, want)
	}
	if got, _ := MeanLogRatio(logp, old, make([]uint8, 5)); got != 0 {
		t.Errorf("a sequence without sampled tokens has log ratio %v, want 0", got)
	}
	if _, inside := MeanLogRatio([]float32{0}, []float32{-50}, []uint8{1}); inside {
		t.Error("a log ratio of 50 was not clamped")
	}
}

func TestTrap05ImportanceWeightsAreTruncatedAboveOnly(t *testing.T) {
	for _, c := range [][3]float64{{-1, -1, 1}, {-1, -3, 2}, {-3, -1, math.Exp(-2)}, {-1, -1.5, math.Exp(0.5)}} {
		if got := ImportanceWeight(c[0], c[1], 2); !near(got, c[2]) {
			t.Errorf("p_old e^%v, p_engine e^%v: weight %v, want %v", c[0], c[1], got, c[2])
		}
	}
}

func TestWeightedRatioNeverLosesItsGradient(t *testing.T) {
	c := Clip{Low: 1, High: 0.28}
	for _, r := range []float64{0.01, 0.9, 1, 1.2, 5} {
		value, slope, side := c.Weighted(r, -2, -0.7)
		w := math.Min(r, 1.28)
		if !near(value, w*-2*-0.7) || !near(slope, w*-2) || (side == ClippedHigh) != (r > 1.28) {
			t.Errorf("ratio %v: value %v slope %v side %v", r, value, slope, side)
		}
	}
}

func TestOnlyTheMostUncertainTokensTrain(t *testing.T) {
	entropy := []float32{9, 0.1, 2, 0.5, 2, 9, 1}
	mask := []uint8{0, 1, 1, 1, 1, 0, 1}
	got, err := HighEntropyMask(entropy, mask, 0.4)
	if err != nil || string(got) != string([]byte{0, 0, 1, 0, 1, 0, 0}) {
		t.Errorf("mask %v, %v", got, err)
	}
	one, _ := HighEntropyMask(entropy, mask, 0.2)
	if string(one) != string([]byte{0, 0, 1, 0, 0, 0, 0}) {
		t.Errorf("the earlier of equal entropies must win: %v", one)
	}
	if all, _ := HighEntropyMask(entropy, mask, 1); string(all) != string(mask) {
		t.Errorf("share 1 keeps %v of %v", all, mask)
	}
	for _, share := range []float64{0, -1, 1.1, math.NaN()} {
		if _, err := HighEntropyMask(entropy, mask, share); err == nil {
			t.Errorf("share %v accepted", share)
		}
	}
	if _, err := HighEntropyMask([]float32{float32(math.NaN())}, []uint8{1}, 1); err == nil {
		t.Error("NaN entropy accepted")
	}
}

func TestLossParametersThatContradictAreNamed(t *testing.T) {
	good := Loss{Ratio: TokenRatio, KLEstimator: K3Estimator}
	for word, change := range map[string]func(l *Loss){
		"ratio": func(l *Loss) { l.Ratio = "tokens" }, "kl_estimator": func(l *Loss) { l.KLEstimator = "k4" },
		"kl_weight": func(l *Loss) { l.KLBeta = math.NaN() }, "importance_limit": func(l *Loss) { l.Importance = 0.5 },
		"dual_clip": func(l *Loss) { l.Ratio, l.Clip.Dual = SequenceRatio, 3 }, "clip_low": func(l *Loss) { l.Clip.Low = 1.5 },
		"clip_high": func(l *Loss) { l.Clip.High = math.Inf(1) },
	} {
		l := good
		change(&l)
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
