package cpu

import (
	"math"

	"github.com/restar-rl/restar/kernels"
)

// itemElements is the number of elements that one item of row work takes: some microseconds, well above the cost of handing it to a
// thread.
const itemElements = 1 << 14

// rowsOf is the number of rows of n elements that make an item.
func rowsOf(n int) int { return max(1, itemElements/max(1, n)) }

// Embedding gathers rows of a table.
func (b *Backend) Embedding(s kernels.Stream, out, table, ids kernels.View, rows, dim int) {
	st := s.(*stream)
	o, id := st.floats("Embedding", "out", out, rows*dim), st.ints("Embedding", "ids", ids, rows)
	t := st.atLeast("Embedding", "table", table, dim)
	if st.err != nil || !st.inRange("Embedding", id, len(t)/dim) {
		return
	}
	for r, i := range id {
		copy(o[r*dim:(r+1)*dim], t[int(i)*dim:])
	}
}

func (s *stream) inRange(op string, ids []int32, n int) bool {
	for r, i := range ids {
		if i < 0 || int(i) >= n {
			s.fail("%s: ids[%d] is %d, want 0 <= id < %d", op, r, i, n)
			return false
		}
	}
	return true
}

// EmbeddingGrad scatters rows into a table, rows ascending.
func (b *Backend) EmbeddingGrad(s kernels.Stream, dtable, dout, ids kernels.View, rows, dim int) {
	st := s.(*stream)
	d, id := st.floats("EmbeddingGrad", "dout", dout, rows*dim), st.ints("EmbeddingGrad", "ids", ids, rows)
	t := st.atLeast("EmbeddingGrad", "dtable", dtable, dim)
	if st.err != nil || !st.inRange("EmbeddingGrad", id, len(t)/dim) {
		return
	}
	for r, i := range id {
		b.accumulate(t[int(i)*dim:int(i+1)*dim], d[r*dim:(r+1)*dim])
	}
}

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
		for r := range rows {
			b.normWeightGrad(w[from:to], g[r*dim+from:r*dim+to], xx[r*dim+from:r*dim+to], rr[r])
		}
	})
}

// SwiGLU gates rows.
func (b *Backend) SwiGLU(s kernels.Stream, y, gateUp kernels.View, rows, ff int) {
	st := s.(*stream)
	out, gu := st.matrix("SwiGLU", "y", b, y, rows, ff), st.floats("SwiGLU", "gateUp", gateUp, 2*rows*ff)
	if st.err != nil {
		return
	}
	st.rows(rows, rowsOf(2*ff), func(w *worker, from, to int) {
		for r := from; r < to; r++ {
			row := out.row(w, r)
			b.swiglu(row, gu[2*r*ff:(2*r+1)*ff], gu[(2*r+1)*ff:(2*r+2)*ff])
			out.store(b, r, row)
		}
	})
}

// SwiGLUGrad is its gradient.
func (b *Backend) SwiGLUGrad(s kernels.Stream, dGateUp, dy, gateUp kernels.View, rows, ff int) {
	st := s.(*stream)
	out, g := st.matrix("SwiGLUGrad", "dGateUp", b, dGateUp, rows, 2*ff), st.floats("SwiGLUGrad", "dy", dy, rows*ff)
	gu := st.floats("SwiGLUGrad", "gateUp", gateUp, 2*rows*ff)
	if st.err != nil {
		return
	}
	st.rows(rows, rowsOf(2*ff), func(w *worker, from, to int) {
		for r := from; r < to; r++ {
			i, j, k, row := 2*r*ff, (2*r+1)*ff, (2*r+2)*ff, out.row(w, r)
			b.swigluGrad(row[:ff], row[ff:], g[r*ff:(r+1)*ff], gu[i:j], gu[j:k])
			out.store(b, r, row)
		}
	})
}
