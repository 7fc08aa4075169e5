package rl

import (
	"math"
	"math/rand"
	"testing"
)

func rewards(ones, zeros int) []float64 {
	r := make([]float64, ones+zeros)
	for i := range ones {
		r[i] = 1
	}
	return r
}

func TestAdvantageVectorsOfTheReleasedCode(t *testing.T) {
	for _, c := range []struct {
		pos, neg    int
		plus, minus float64
	}{
		{8, 8, 0.9682, -0.9682}, {2, 14, 2.5617, -0.3660}, {14, 2, 0.3660, -2.5617}, {1, 15, 3.75, -0.25}, {4, 12, 1.6770, -0.5590},
	} {
		a, degenerate, err := Advantages(rewards(c.pos, c.neg), MeanStd)
		if err != nil || degenerate {
			t.Fatal(degenerate, err)
		}
		if math.Abs(a[0]-c.plus) > 5e-5 || math.Abs(a[15]-c.minus) > 5e-5 {
			t.Errorf("%d+/%d-: %+.4f/%+.4f, want %+.4f/%+.4f", c.pos, c.neg, a[0], a[15], c.plus, c.minus)
		}
	}
}

func TestTrap07DegenerateGroupHasAdvantageExactlyZero(t *testing.T) {
	for n := 1; n <= 33; n++ {
		for k := range 200 {
			r := make([]float64, n)
			for i := range r {
				r[i] = float64(k) / 7 / float64(n)
			}
			for _, baseline := range []Baseline{MeanStd, MeanOnly} {
				a, degenerate, err := Advantages(r, baseline)
				if err != nil || !degenerate {
					t.Fatalf("n=%d reward=%v: degenerate=%v err=%v", n, r[0], degenerate, err)
				}
				for _, v := range a {
					if v != 0 {
						t.Fatalf("n=%d reward=%v gave advantage %v", n, r[0], v)
					}
				}
			}
		}
	}
}

func TestTrap07SingletonGroupIsNotRewarded(t *testing.T) {
	if a, degenerate, _ := Advantages([]float64{1}, MeanStd); a[0] != 0 || !degenerate {
		t.Errorf("group of one got advantage %v, degenerate %v", a[0], degenerate)
	}
}

func TestTrap07AdvantagesArePermutationInvariantToTheBit(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	values := make([]float64, 16)
	for i := range values {
		values[i] = r.NormFloat64()
	}
	want, _, _ := Advantages(values, MeanStd)
	for range 50 {
		p := r.Perm(16)
		shuffled := make([]float64, 16)
		for i, j := range p {
			shuffled[i] = values[j]
		}
		got, _, _ := Advantages(shuffled, MeanStd)
		for i, j := range p {
			if got[i] != want[j] {
				t.Fatalf("advantage of value %d changed from %v to %v", j, want[j], got[i])
			}
		}
	}
}

func TestMeanOnlyDoesNotDivide(t *testing.T) {
	a, _, _ := Advantages(rewards(1, 3), MeanOnly)
	if a[0] != 0.75 || a[1] != -0.25 {
		t.Errorf("got %v", a)
	}
}

func TestNonFiniteRewardsAndUnknownBaselinesAreRefused(t *testing.T) {
	if _, _, err := Advantages([]float64{math.Inf(1), 0}, MeanStd); err == nil {
		t.Error("infinite reward accepted")
	}
	if _, _, err := Advantages([]float64{1, 0}, "median"); err == nil {
		t.Error("unknown baseline accepted")
	}
}

func TestTrap09TokenMeanIsInvariantToMicroBatching(t *testing.T) {
	tokens := []int{3, 50, 1, 7, 0, 22, 9}
	loss := func(i, t int) float64 { return float64((i*31+t*17)%13) - 6 }
	sumSlice := func(weights []float64, from, to int) float64 {
		var s float64
		for i := from; i < to; i++ {
			for t := range tokens[i] {
				s += weights[i] * loss(i, t)
			}
		}
		return s
	}
	for _, norm := range []LossNorm{TokenMean, SequenceMean, ConstantNorm} {
		w, err := TokenWeights(norm, tokens, 64)
		if err != nil {
			t.Fatal(err)
		}
		want := sumSlice(w, 0, len(tokens))
		for _, size := range []int{1, 2, 3, 4} {
			var got float64
			for from := 0; from < len(tokens); from += size {
				got += sumSlice(w, from, min(from+size, len(tokens)))
			}
			if math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: micro-batches of %d give %v, whole batch %v", norm, size, got, want)
			}
		}
	}
}

func TestTrap08LossWeightsFollowTheirFormulas(t *testing.T) {
	tokens := []int{1, 3}
	for norm, want := range map[LossNorm][]float64{
		TokenMean: {0.25, 0.25}, SequenceMean: {0.5, 1.0 / 6}, ConstantNorm: {0.05, 0.05},
	} {
		got, err := TokenWeights(norm, tokens, 10)
		if err != nil || got[0] != want[0] || math.Abs(got[1]-want[1]) > 1e-15 {
			t.Errorf("%s: %v, want %v (%v)", norm, got, want, err)
		}
	}
	for _, bad := range []func() error{
		func() error { _, err := TokenWeights("mean", tokens, 1); return err },
		func() error { _, err := TokenWeights(ConstantNorm, tokens, 0); return err },
		func() error { _, err := TokenWeights(TokenMean, []int{-1}, 1); return err },
	} {
		if bad() == nil {
			t.Error("bad loss weights accepted")
		}
	}
}

func TestTrap10K3Values(t *testing.T) {
	for d, want := range map[float64]float64{0: 0, 0.1: 0.005171, -0.5: 0.106531, 100: 10, -100: 10} {
		if got := K3(-1, -1+d); math.Abs(got-want) > 5e-7 {
			t.Errorf("log ratio %v: %v, want %v", d, got, want)
		}
	}
}

func TestOverlongPenaltyPointsOfDAPO(t *testing.T) {
	for n, want := range map[int]float64{0: 0, 12288: 0, 16384: 0, 18432: -0.5, 20480: -1, 20481: -1, 99999: -1} {
		if got, err := OverlongPenalty(n, 20480, 4096); err != nil || got != want {
			t.Errorf("length %d: %v, want %v (%v)", n, got, want, err)
		}
	}
	if _, err := OverlongPenalty(1, 10, 11); err == nil {
		t.Error("cache wider than the limit accepted")
	}
}

func TestTrap14RefillIsBounded(t *testing.T) {
	rounds := 1
	for RefillNext(0, 512, rounds, 10) {
		rounds++
	}
	if rounds != 10 {
		t.Errorf("stopped after %d rounds, want 10", rounds)
	}
	if RefillNext(512, 512, 1, 10) || !RefillNext(511, 512, 1000, 0) {
		t.Error("refill must stop when full and go on without a bound")
	}
}

func TestProcessSupervisionSumsNormalisedStepsFromBehind(t *testing.T) {
	// Rewards 1, 0, 0, 1 over the group: mean 0.5, unbiased std 0.57735, so +-0.8660.
	steps := [][]StepReward{{{1, 1}, {4, 0}}, {{0, 0}, {2, 1}}}
	got, degenerate, err := ProcessAdvantages(steps, []int{6, 3})
	if err != nil || degenerate {
		t.Fatal(degenerate, err)
	}
	const p = 0.8660239
	want := [][]float64{{0, 0, -p, -p, -p, 0}, {0, p, p}}
	for i := range want {
		for j := range want[i] {
			if math.Abs(got[i][j]-want[i][j]) > 1e-5 {
				t.Errorf("response %d token %d: %v, want %v", i, j, got[i][j], want[i][j])
			}
		}
	}
	if _, _, err := ProcessAdvantages([][]StepReward{{{3, 1}, {2, 0}}}, []int{5}); err == nil {
		t.Error("descending step ends accepted")
	}
}
