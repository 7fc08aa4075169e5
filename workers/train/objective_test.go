package train

import (
	"math"
	"testing"

	"github.com/restar-rl/restar/workers/rl"
)

// oneToken is dL/dlogp of a sequence's only sampled token.
func oneToken(obj Objective, a *sums, logRatio, advantage, weight float64) float32 {
	it := item{Sequence{Mask: []uint8{0, 1}, LogProbs: []float32{0, -1}, Advantage: float32(advantage)}, weight}
	coef := make([]float32, 2)
	obj.withDefaults().coefficients(a, it, []float32{0, float32(logRatio - 1)}, []float32{0, 0.5}, coef)
	return coef[1]
}

func TestTrap11TokensOfTheClippedSurrogate(t *testing.T) {
	dual := Objective{Kind: PolicyGradient, Clip: rl.Clip{Low: 0.2, High: 0.28, Dual: 3}}
	for _, c := range []struct {
		obj                  Objective
		logRatio, advantage  float64
		loss, slope          float64 // per unit of weight: L and dL/dlogp
		clippedLow, clippedH int
	}{
		{testObjective(), 0, 1, -1, -1, 0, 0},
		{testObjective(), 0, -2, 2, 2, 0, 0},
		{testObjective(), math.Log(1.25), 1, -1.25, -1.25, 0, 0},
		{testObjective(), math.Log(1.5), 1, -1.28, 0, 0, 1},
		{testObjective(), math.Log(0.5), 1, -0.5, -0.5, 0, 0},
		{testObjective(), math.Log(0.5), -1, 0.8, 0, 1, 0},
		{testObjective(), math.Log(1.5), -1, 1.5, 1.5, 0, 0},
		{testObjective(), math.Log(5), -1, 5, 5, 0, 0},
		{dual, math.Log(5), -1, 3, 0, 0, 0},
		{dual, math.Log(2), -1, 2, 2, 0, 0},
		{dual, math.Log(5), 1, -1.28, 0, 0, 1},
		{testObjective(), 25, -1, math.Exp(20), 0, 0, 0},
		{testObjective(), math.Log(5), 0, 0, 0, 0, 0},
	} {
		var a sums
		const weight = 0.25
		slope := oneToken(c.obj, &a, c.logRatio, c.advantage, weight)
		near := func(x, y float64) bool { return math.Abs(x-y) < 1e-5*(1+math.Abs(y)) }
		if !near(a.loss, weight*c.loss) || !near(float64(slope), weight*c.slope) || a.clipLow != c.clippedLow || a.clipHigh != c.clippedH {
			t.Errorf("log ratio %.3f, advantage %v: loss %v slope %v clipped %d/%d, want %v %v %d/%d", c.logRatio, c.advantage,
				a.loss, slope, a.clipLow, a.clipHigh, weight*c.loss, weight*c.slope, c.clippedLow, c.clippedH)
		}
	}
}

func TestKLIsSchulmansThirdEstimator(t *testing.T) {
	// log r = log policy - log behaviour; the published vectors of k3 (0.1 and -0.5).
	for logRatio, want := range map[float32]float64{0.1: 0.005171, -0.5: 0.106531} {
		var a sums
		oneToken(testObjective(), &a, float64(logRatio), 1, 1)
		if math.Abs(a.kl-want) > 1e-6 {
			t.Errorf("k3 of log ratio %v is %v, want %v", logRatio, a.kl, want)
		}
	}
}

func TestTrap09OneDenominatorForTheWholeBatch(t *testing.T) {
	b := Batch{[]Sequence{
		{Ordinal: 0, IDs: make([]int32, 5), Mask: []uint8{0, 1, 1, 1, 0}, LogProbs: make([]float32, 5)},
		{Ordinal: 1, IDs: make([]int32, 3), Mask: []uint8{0, 0, 1}, LogProbs: make([]float32, 3)},
	}}
	for norm, want := range map[rl.LossNorm][2]float64{
		"": {0.25, 0.25}, rl.TokenMean: {0.25, 0.25}, rl.SequenceMean: {1. / 6, 0.5}, rl.ConstantNorm: {1. / 20, 1. / 20},
	} {
		leaves, err := divide(b, Objective{Kind: PolicyGradient, Norm: norm, MaxLength: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leaves {
			for _, it := range l {
				if math.Abs(it.weight-want[it.Ordinal]) > 1e-15 {
					t.Errorf("%q: token weight of sequence %d is %v, want %v", norm, it.Ordinal, it.weight, want[it.Ordinal])
				}
			}
		}
	}
}

func TestLearningRatesOfTheSchedules(t *testing.T) {
	constant := Optimizer{LR: 2, WarmupSteps: 4}
	cosine := Optimizer{LR: 2, WarmupSteps: 4, Schedule: Cosine, TotalSteps: 12}
	for _, c := range []struct {
		opt    Optimizer
		update int64
		want   float64
	}{
		{constant, 1, 0.5}, {constant, 4, 2}, {constant, 5, 2}, {constant, 1000, 2}, {Optimizer{LR: 2}, 1, 2},
		{cosine, 2, 1}, {cosine, 4, 2}, {cosine, 5, 2}, {cosine, 9, 1}, {cosine, 12, 1 + math.Cos(math.Pi*7/8)}, {cosine, 50, 0},
	} {
		if got := c.opt.rate(c.update); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: rate of update %d is %v, want %v", c.opt, c.update, got, c.want)
		}
	}
}

func TestTheClipFactorIsTorchs(t *testing.T) {
	for _, c := range [][3]float64{{1, 4, 1 / (4 + 1e-6)}, {1, 0.5, 1}, {0, 1e9, 1}} {
		if got := (Optimizer{ClipNorm: c[0]}).clip(c[1]); got != c[2] {
			t.Errorf("clip %v of norm %v gives %v, want %v", c[0], c[1], got, c[2])
		}
	}
}
