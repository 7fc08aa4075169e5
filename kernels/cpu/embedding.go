package cpu

import "github.com/restar-rl/restar/kernels"

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
