package cpu

import "github.com/restar-rl/restar/kernels"

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
