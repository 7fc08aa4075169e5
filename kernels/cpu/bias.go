package cpu

import "github.com/restar-rl/restar/kernels"

// AddBias adds one row to every row.
func (b *Backend) AddBias(s kernels.Stream, x, bias kernels.View, rows, dim int) {
	st := s.(*stream)
	xx, bb := st.floats("AddBias", "x", x, rows*dim), st.floats("AddBias", "bias", bias, dim)
	if st.err != nil {
		return
	}
	st.rows(rows, rowsOf(dim), func(_ *worker, from, to int) {
		for r := from; r < to; r++ {
			b.accumulate(xx[r*dim:(r+1)*dim], bb)
		}
	})
}

// BiasGrad cuts columns into items; each runs over the rows ascending.
func (b *Backend) BiasGrad(s kernels.Stream, dbias, dy kernels.View, rows, dim int) {
	st := s.(*stream)
	d, g := st.floats("BiasGrad", "dbias", dbias, dim), st.floats("BiasGrad", "dy", dy, rows*dim)
	if st.err != nil {
		return
	}
	st.rows(dim, 4*lanes, func(_ *worker, from, to int) {
		for r := range rows {
			b.accumulate(d[from:to], g[r*dim+from:r*dim+to])
		}
	})
}
