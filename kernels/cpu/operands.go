package cpu

// This file moves operands of float32 products, and rows of any, to where tiles read them from end to end.

// packOperands rearranges operands that tiles would read badly, if there is enough work to pay for it.
func (b *Backend) packOperands(s *stream, p *product) {
	if p.size.M < packFrom {
		return
	}
	if p.aliased() && panels(p.size.N) >= spreadFrom {
		p.spreadRows(s)
	}
	if p.kind != plain {
		return
	}
	k, n, w := p.size.K, p.size.N, s.worker()
	if p.ldb != panel {
		dst, src := w.buffer(packedB, panels(n)*panel*k), p.b
		s.rows(k, packRowsItem, func(_ *worker, from, to int) { b.packRows(dst, src, from, to, n, panel*k) })
		p.b, p.ldb, p.jump = dst, panel, panel*k
	}
	if p.transposed {
		m := p.size.M
		groups := (m + colChunk - 1) / colChunk
		dst, src, ld := w.buffer(packedA, groups*colChunk*k), p.a, p.lda
		s.rows(k, packRowsItem, func(_ *worker, from, to int) { b.packCols(dst, src, from, to, m, ld, colChunk*k) })
		p.a, p.lda, p.jumpA = dst, colChunk, colChunk*k
	}
}

// aliased reports whether the rows of a lie a multiple of 4 KiB apart, so that a tile's rows share one set of the first-level cache, which
// holds fewer lines than a tile has rows.
func (p *product) aliased() bool { return !p.transposed && p.lda%1024 == 0 && p.size.M > 1 }

// line is the number of words of a cache line.
const line = 16

// spreadRows copies a to where its rows share no set.
func (p *product) spreadRows(s *stream) {
	src, k, from := p.a, p.size.K, p.lda
	ld := k + line
	dst := s.worker().buffer(packedA, p.size.M*ld)
	s.rows(p.size.M, rowsOf(k), func(_ *worker, i, to int) {
		for ; i < to; i++ {
			copy(dst[i*ld:i*ld+k], src[i*from:i*from+k])
		}
	})
	p.a, p.lda = dst, ld
}

// packCols copies rows [from, to) of src[k,m], ld apart, into groups of colChunk columns that are size floats apart. What is beyond the last
// column is never read.
func (b *Backend) packCols(dst, src []float32, from, to, m, ld, size int) {
	for p := from; p < to; p++ {
		row, at := src[p*ld:p*ld+m], p*colChunk
		if whole := m / colChunk; whole > 0 && b.isa == avx512 {
			avx512CopyGroups(&dst[at], 4*uintptr(size), &row[0], whole)
			row, at = row[whole*colChunk:], at+whole*size
		}
		for ; len(row) > 0; row, at = row[min(len(row), colChunk):], at+size {
			copy(dst[at:], row[:min(len(row), colChunk)])
		}
	}
}
