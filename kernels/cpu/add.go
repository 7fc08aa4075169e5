package cpu

import "github.com/restar-rl/restar/kernels"

// Add adds elements independently.
func (b *Backend) Add(s kernels.Stream, dst, src kernels.View) {
	st := s.(*stream)
	d, x := st.floats("Add", "dst", dst, dst.Len), st.floats("Add", "src", src, dst.Len)
	if st.err == nil {
		st.rows(len(d), elementsPerItem, func(_ *worker, i, j int) { b.accumulate(d[i:j], x[i:j]) })
	}
}
