package cpu

import "github.com/restar-rl/restar/kernels"

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
