package model

import (
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels/cpu"
)

func TestRecomputedActivationsGiveTheBitsOfKeptOnes(t *testing.T) {
	inEveryNumerics(t, func(t *testing.T, b *cpu.Backend, precision Precision) {
		for name, c := range everyFamily() {
			c.Layers = 3
			m := mustModel(t, b, c, WithPrecision(precision))
			p := Pack(ids(1, 70, 53), ids(2, 5, 53), ids(3, 1, 53))
			run := func(recompute bool) ([]float32, *Gradient) {
				g, ws := NewGradient(m), &Workspace{Recompute: recompute}
				var logp []float32
				coef := func(lp, _ []float32) ([]float32, error) { logp = slices.Clone(lp); return lp, nil }
				if err := m.Backward(t.Context(), ws, p, coef, g); err != nil {
					t.Fatal(err)
				}
				return logp, g
			}
			kept, want := run(false)
			again, got := run(true)
			if i := sameBits(again, kept); i >= 0 {
				t.Errorf("%s: log-prob %d differs", name, i)
			}
			for k, ts := range got.Tensors() {
				if i := sameBits(ts.Data, want.Tensors()[k].Data); i >= 0 {
					t.Errorf("%s: %s[%d] differs", name, ts.Name, i)
				}
			}
		}
	})
}

func TestRecomputationKeepsOneRowOfTheResidualStreamALayer(t *testing.T) {
	m, err := New(even(), 1)
	if err != nil {
		t.Fatal(err)
	}
	kept := func(recompute bool, layers int) int {
		m.Config.Layers = layers
		m, err := New(m.Config, 1)
		if err != nil {
			t.Fatal(err)
		}
		ws := &Workspace{Recompute: recompute}
		err = m.Backward(t.Context(), ws, Pack(ids(1, 100, 300)), func(lp, _ []float32) ([]float32, error) { return lp, nil }, NewGradient(m))
		if err != nil {
			t.Fatal(err)
		}
		return ws.Floats()
	}
	const rows = 100
	more := kept(true, 5) - kept(true, 2)
	if want := 3 * rows * m.Config.HiddenSize; more != want {
		t.Errorf("three more layers take %d floats for %d rows, want %d: one row of the residual stream each", more, rows, want)
	}
	if whole := kept(false, 5) - kept(false, 2); whole < 8*more {
		t.Errorf("without recomputation three more layers take %d floats, want at least 8 times the %d with it", whole, more)
	}
}
