package model

import (
	"math"
	"testing"

	"github.com/restar-rl/restar/kernels/cpu"
)

// lossOf is sum(weight * logp) over a packed pass, in float64.
func lossOf(t *testing.T, m *Model, ws *Workspace, p Packed, weight []float32) float64 {
	t.Helper()
	m.WeightsChanged()
	logp, _, err := m.LogProbs(t.Context(), ws, p)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, v := range logp {
		sum += float64(weight[i]) * float64(v)
	}
	return sum
}

// Central differences along the gradient's own direction and along single elements.
func TestGradientsMatchFiniteDifferencesThroughTheWholeModel(t *testing.T) {
	onEveryPath(t, func(t *testing.T, b *cpu.Backend) {
		for name, c := range everyFamily() {
			m, ws := mustModel(t, b, c), NewWorkspace()
			p := Pack(ids(1, 9, 53), ids(2, 67, 53), ids(3, 2, 53))
			weight := make([]float32, len(p.IDs))
			for i := range weight {
				weight[i] = float32(i%5) - 1.5
			}
			g := NewGradient(m)
			err := m.Backward(t.Context(), ws, p, func(_, _ []float32) ([]float32, error) { return weight, nil }, g)
			if err != nil {
				t.Fatal(err)
			}
			for k, ts := range g.Tensors() {
				checkDirection(t, name, m, ws, p, weight, m.params[k], ts.Data)
			}
		}
	})
}

// checkDirection moves one tensor along its gradient; the loss must change by the gradient's squared length.
func checkDirection(t *testing.T, family string, m *Model, ws *Workspace, p Packed, weight []float32, param Param, grad []float32) {
	t.Helper()
	square := 0.0
	for _, v := range grad {
		square += float64(v) * float64(v)
	}
	if square == 0 {
		t.Errorf("%s, %s: the gradient is zero", family, param.Name)
		return
	}
	const size = 2e-3 // length of the step: small against the weights, large against rounding
	h := size / math.Sqrt(square)
	old := append([]float32(nil), param.Data...)
	at := func(sign float64) float64 {
		for i := range old {
			param.Data[i] = old[i] + float32(sign*h*float64(grad[i]))
		}
		return lossOf(t, m, ws, p, weight)
	}
	slope := (at(1) - at(-1)) / (2 * h)
	copy(param.Data, old)
	if math.Abs(slope-square) > 4e-3*square+1e-3*math.Sqrt(square) {
		t.Errorf("%s, %s: slope along the gradient is %g, want its squared length %g", family, param.Name, slope, square)
	}
}
