package cpu

import (
	"math"

	"github.com/restar-rl/restar/kernels"
)

// elementsPerItem is the number of elements that one item of element-wise work takes.
const elementsPerItem = 1 << 14

// foldAdamW computes a step's constants in float64 and rounds them once.
func foldAdamW(s kernels.AdamWStep) adamwConstants {
	t := float64(s.Step)
	return adamwConstants{
		scale:         float32(s.Scale),
		oneMinusBeta1: float32(1 - s.Beta1),
		beta2:         float32(s.Beta2),
		oneMinusBeta2: float32(1 - s.Beta2),
		rate:          float32(s.LR / (1 - math.Pow(s.Beta1, t))),
		rootScale:     float32(1 / math.Sqrt(1-math.Pow(s.Beta2, t))),
		eps:           float32(s.Eps),
		decay:         float32(1 - s.LR*s.WeightDecay),
	}
}

// AdamW updates elements independently.
func (b *Backend) AdamW(s kernels.Stream, w, m, v, g kernels.View, n int, step kernels.AdamWStep) {
	st := s.(*stream)
	ww, mm := st.floats("AdamW", "w", w, n), st.floats("AdamW", "m", m, n)
	vv, gg := st.floats("AdamW", "v", v, n), st.floats("AdamW", "g", g, n)
	if step.Step < 1 {
		st.fail("AdamW: step is %d, want 1 or more", step.Step)
	}
	if st.err != nil {
		return
	}
	c := foldAdamW(step)
	st.rows(n, elementsPerItem, func(_ *worker, i, j int) { b.adamw(ww[i:j], mm[i:j], vv[i:j], gg[i:j], &c) })
}
