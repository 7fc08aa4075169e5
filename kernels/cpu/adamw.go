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

// SumSquares gives each item one tensor.
func (b *Backend) SumSquares(s kernels.Stream, out []float64, xs []kernels.View) {
	st := s.(*stream)
	if len(out) != len(xs) {
		st.fail("SumSquares: out holds %d sums, want %d", len(out), len(xs))
	}
	floats := make([][]float32, len(xs))
	for i, x := range xs {
		floats[i] = st.floats("SumSquares", "x", x, x.Len)
	}
	if st.err != nil {
		return
	}
	st.parallel(len(xs), func(_ *worker, i int) { out[i] = b.sumSquaresWide(floats[i]) })
}

// sumSquaresWide keeps 16 lanes in float64, where the square of a float32 is exact.
func (b *Backend) sumSquaresWide(x []float32) float64 {
	var acc [lanes]float64
	n := 0
	if b.isa == avx512 {
		if n = b.whole(len(x)); n > 0 {
			avx512SumSquares(&x[0], n/lanes, &acc)
		}
	}
	for i, v := range x[n:] {
		acc[i%lanes] += float64(v) * float64(v)
	}
	for w := lanes / 2; w > 0; w /= 2 {
		for i := range w {
			acc[i] += acc[i+w]
		}
	}
	return acc[0]
}

// Add adds elements independently.
func (b *Backend) Add(s kernels.Stream, dst, src kernels.View) {
	st := s.(*stream)
	d, x := st.floats("Add", "dst", dst, dst.Len), st.floats("Add", "src", src, dst.Len)
	if st.err == nil {
		st.rows(len(d), elementsPerItem, func(_ *worker, i, j int) { b.accumulate(d[i:j], x[i:j]) })
	}
}
