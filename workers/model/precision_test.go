package model

import (
	"math"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels/cpu"
)

// apart is the length of a-b relative to the length of b.
func apart(a, b []float32) float64 {
	d, n := 0.0, 0.0
	for i := range b {
		x := float64(a[i]) - float64(b[i])
		d, n = d+x*x, n+float64(b[i])*float64(b[i])
	}
	return math.Sqrt(d / n)
}

// Each operand of a product is off by at most 2^-9 of its size, at random. The few products in a row of these models multiply that by some
// powers of two, backward more than forward.
func TestBF16IsFP32ToTheRoundingOfItsOperands(t *testing.T) {
	onEveryPath(t, func(t *testing.T, b *cpu.Backend) {
		all := everyFamily()
		all["even"] = even()
		for name, c := range all {
			p := Pack(ids(1, 70, 53), ids(2, 5, 53), ids(3, 1, 53), ids(4, 33, 53))
			run := func(precision Precision) (logp []float32, g *Gradient) {
				m := mustModel(t, b, c, WithPrecision(precision))
				g = NewGradient(m)
				coef := func(lp, _ []float32) ([]float32, error) {
					logp = slices.Clone(lp)
					out := make([]float32, len(lp))
					for i := range out {
						out[i] = float32(i%5) - 1.5
					}
					return out, nil
				}
				if err := m.Backward(t.Context(), nil, p, coef, g); err != nil {
					t.Fatal(err)
				}
				return logp, g
			}
			want, wantGrad := run(PrecisionFP32)
			got, grad := run(PrecisionBF16)
			const forward, backward = 1.0 / 64, 1.0 / 16
			if d := apart(got, want); !(d > 0 && d < forward) {
				t.Errorf("%s: log-probs are %g apart from fp32's, want some, but less than %g", name, d, forward)
			}
			for k, ts := range grad.Tensors() {
				if d := apart(ts.Data, wantGrad.Tensors()[k].Data); !(d > 0 && d < backward) {
					t.Errorf("%s: gradient of %s is %g apart from fp32's, want some, but less than %g", name, ts.Name, d, backward)
				}
			}
		}
	})
}

func TestAModelNamesItsPrecisionAndKeepsItWhenCloned(t *testing.T) {
	m, err := New(small(true), 1, WithPrecision(PrecisionBF16))
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Clone()
	if err != nil {
		t.Fatal(err)
	}
	if m.Precision() != PrecisionBF16 || c.Precision() != PrecisionBF16 {
		t.Errorf("precisions are %q and %q, want %q", m.Precision(), c.Precision(), PrecisionBF16)
	}
	if NumericsOf(PrecisionBF16) == NumericsOf(PrecisionFP32) || NumericsOf(PrecisionFP32) != NumericsID() {
		t.Errorf("numerics ids are %q and %q", NumericsOf(PrecisionBF16), NumericsOf(PrecisionFP32))
	}
	if _, err := New(small(true), 1, WithPrecision("fp8")); err == nil {
		t.Error("precision fp8 was accepted")
	}
}
