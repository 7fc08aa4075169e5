package engine

import (
	"math"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
)

func TestSamplesFollowTheSoftmaxAtTheirTemperature(t *testing.T) {
	logits := []float32{0.3, -1, 2, 0.9, -30, 1.4}
	for _, temperature := range []float32{0.5, 1, 2} {
		want, sum := make([]float64, len(logits)), 0.0
		for i, l := range logits {
			want[i] = math.Exp(float64(l / temperature))
			sum += want[i]
		}
		const n = 40000
		count := make([]float64, len(logits))
		k, entropy := philox.NewKey(5), 0.0
		for i := range want {
			want[i] /= sum
			entropy -= want[i] * math.Log(want[i])
		}
		for i := range n {
			d := drawToken(logits, temperature, k.Uniform(philox.Address{Token: i}))
			count[d.id]++
			if math.Abs(float64(d.logp)-math.Log(want[d.id])) > 1e-5 {
				t.Fatalf("T=%v: log-prob of id %d is %v, want %v", temperature, d.id, d.logp, math.Log(want[d.id]))
			}
			if math.Abs(float64(d.entropy)-entropy) > 1e-5 {
				t.Fatalf("T=%v: entropy is %v, want %v", temperature, d.entropy, entropy)
			}
		}
		for i := range want {
			if sigma := math.Sqrt(want[i]*(1-want[i])/n) + 1e-9; math.Abs(count[i]/n-want[i]) > 5*sigma {
				t.Errorf("T=%v: id %d drawn %v of the time, want %v", temperature, i, count[i]/n, want[i])
			}
		}
	}
}

func TestInversionTakesTheFirstIdBeyondTheUniform(t *testing.T) {
	logits := []float32{float32(math.Log(0.5)), float32(math.Log(0.25)), -200, float32(math.Log(0.25))}
	for _, c := range []struct {
		u    float64
		want int32
	}{{0, 0}, {0.49, 0}, {0.51, 1}, {0.74, 1}, {0.76, 3}, {1 - 1e-16, 0}} {
		if d := drawToken(logits, 1, c.u); d.id != c.want && c.u < 0.99 || !d.finite || d.id == 2 {
			t.Errorf("u=%v draws %d (finite %v), want %d", c.u, d.id, d.finite, c.want)
		}
	}
}

func TestGreedyTakesTheSmallestOfEqualIdsAndReportsTheSoftmax(t *testing.T) {
	d := drawToken([]float32{1, 3, 3, 0}, 0, 0.999)
	want := 3 - math.Log(math.Exp(1)+2*math.Exp(3)+1)
	if d.id != 1 || math.Abs(float64(d.logp)-want) > 1e-6 {
		t.Errorf("greedy drew %d with log-prob %v, want 1 with %v", d.id, d.logp, want)
	}
}

func TestARowThatIsNoDistributionIsNeverSampled(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, row := range [][]float32{{nan, 1}, {1, nan}, {inf, 0}, {-inf, -inf}} {
		for _, temperature := range []float32{0, 1, 0.7} {
			if d := drawToken(row, temperature, 0.5); d.finite {
				t.Errorf("row %v at T=%v drew id %d with log-prob %v", row, temperature, d.id, d.logp)
			}
		}
	}
}
