package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels/cpu"
	"github.com/restar-rl/restar/kernels/philox"
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

// The loss must change by the gradient's product with the step, whatever the direction. Most directions are drawn without a look at the
// gradient: along the gradient itself one that lacks some of its elements agrees with its own squared length.
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
			loss := func() float64 { return lossOf(t, m, ws, p, weight) }
			for k, ts := range g.Tensors() {
				size := length(ts.Data)
				if size == 0 {
					t.Errorf("%s, %s: the gradient is zero", name, ts.Name)
					continue
				}
				for _, d := range directions(k, ts.Data, size) {
					slope, want := d.difference(m.params[k].Data, ts.Data, loss)
					if !(math.Abs(slope-want) <= d.share*size+d.rounding) {
						t.Errorf("%s, %s: slope along %s is %g, want %g (the gradient's length is %g)", name, ts.Name, d.name, slope, want, size)
					}
				}
			}
		}
	})
}

func length(x []float32) float64 {
	square := 0.0
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	return math.Sqrt(square)
}

// direction is a step that moves the elements of a tensor.
type direction struct {
	name     string
	step     []float64 // what each element moves by, there and back
	per      float64   // the size of the step: slopes are per unit of it
	share    float64   // of the gradient's length: what curvature may add to a slope
	rounding float64   // what the float32 of the log-probs may add to a slope
}

// directions are the gradient's own, random signs of all elements, and single elements.
func directions(tensor int, grad []float32, size float64) []direction {
	own := direction{"the gradient", make([]float64, len(grad)), 2e-3, 4e-3, 1e-3}
	for i, v := range grad {
		own.step[i] = own.per * float64(v) / size
	}
	key, at := philox.NewKey(3), philox.Address{Purpose: philox.Select, Ordinal: tensor}
	signs := direction{"random signs", make([]float64, len(grad)), 1e-3, 1e-2, 5e-3}
	for i := range signs.step {
		signs.step[i] = signs.per * float64(2*key.IntN(at.WithTurn(1).WithToken(i), 2)-1)
	}
	out := []direction{own, signs}
	for draw := range 2 {
		i := key.IntN(at.WithToken(draw), len(grad))
		d := direction{fmt.Sprint("element ", i), make([]float64, len(grad)), 1e-2, 1e-3, 1e-3}
		d.step[i] = d.per
		out = append(out, d)
	}
	return out
}

// difference returns the central difference of the loss along a direction, and the gradient's slope over the same steps as float32
// rounds them.
func (d direction) difference(data, grad []float32, loss func() float64) (slope, want float64) {
	old := slices.Clone(data)
	at := func(sign float64) (float64, []float32) {
		for i, v := range old {
			data[i] = float32(float64(v) + sign*d.step[i])
		}
		return loss(), slices.Clone(data)
	}
	up, above := at(1)
	down, below := at(-1)
	copy(data, old)
	for i, g := range grad {
		want += float64(g) * (float64(above[i]) - float64(below[i])) / (2 * d.per)
	}
	return (up - down) / (2 * d.per), want
}
