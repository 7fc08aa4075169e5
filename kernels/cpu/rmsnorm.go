package cpu

import (
	"math"

	"github.com/restar-rl/restar/kernels"
)

// rstd is 1/sqrt(mean(x^2)+eps).
func (b *Backend) rstd(x []float32, eps float32) float32 {
	return float32(1 / math.Sqrt(float64(b.sumSquares(x)/float32(len(x))+eps)))
}

// RMSNorm normalises rows.
func (b *Backend) RMSNorm(s kernels.Stream, y, rstd, x, w kernels.View, rows, dim int, eps float32) {
	st := s.(*stream)
	out, rr := st.matrix("RMSNorm", "y", b, y, rows, dim), st.floats("RMSNorm", "rstd", rstd, rows)
	xx, ww := st.floats("RMSNorm", "x", x, rows*dim), st.floats("RMSNorm", "w", w, dim)
	if st.err != nil {
		return
	}
	st.rows(rows, rowsOf(dim), func(w *worker, from, to int) {
		for r := from; r < to; r++ {
			row, to := xx[r*dim:(r+1)*dim], out.row(w, r)
			rr[r] = b.rstd(row, eps)
			b.scaleWeight(to, row, ww, rr[r])
			out.store(b, r, to)
		}
	})
}

// RMSNormGrad computes, with g = dy*w, dx += rstd g - x rstd^3 mean(g x).
func (b *Backend) RMSNormGrad(s kernels.Stream, dx, dy, x, w, rstd kernels.View, rows, dim int) {
	st := s.(*stream)
	d, g := st.floats("RMSNormGrad", "dx", dx, rows*dim), st.floats("RMSNormGrad", "dy", dy, rows*dim)
	xx, ww := st.floats("RMSNormGrad", "x", x, rows*dim), st.floats("RMSNormGrad", "w", w, dim)
	rr := st.floats("RMSNormGrad", "rstd", rstd, rows)
	if st.err != nil {
		return
	}
	st.rows(rows, rowsOf(dim), func(_ *worker, from, to int) {
		for r := from; r < to; r++ {
			i, j := r*dim, (r+1)*dim
			b.normRowGrad(d[i:j], g[i:j], xx[i:j], ww, rr[r])
		}
	})
}

func (b *Backend) normRowGrad(dx, dy, x, w []float32, r float32) {
	c := float32(float32(r*r)*r) * (b.triple(dy, w, x) / float32(len(x)))
	b.normGrad(dx, dy, x, w, r, c)
}

// RMSNormWeightGrad cuts columns into items; each runs over the rows ascending.
func (b *Backend) RMSNormWeightGrad(s kernels.Stream, dw, dy, x, rstd kernels.View, rows, dim int) {
	st := s.(*stream)
	w, g := st.floats("RMSNormWeightGrad", "dw", dw, dim), st.floats("RMSNormWeightGrad", "dy", dy, rows*dim)
	xx, rr := st.floats("RMSNormWeightGrad", "x", x, rows*dim), st.floats("RMSNormWeightGrad", "rstd", rstd, rows)
	if st.err != nil {
		return
	}
	st.rows(dim, 4*lanes, func(_ *worker, from, to int) {
		if to-from == 4*lanes && rows > 0 && b.isa == avx512 {
			avx512NormWeightSums(&w[from], &g[from], &xx[from], &rr[0], rows, 4*uintptr(dim))
			return
		}
		for r := range rows {
			b.normWeightGrad(w[from:to], g[r*dim+from:r*dim+to], xx[r*dim+from:r*dim+to], rr[r])
		}
	})
}
