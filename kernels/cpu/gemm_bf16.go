package cpu

import (
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// Products with bfloat16 operands. A link of a chain of pairs is what VDPBF16PS computes (Intel SDM, volume 2C): the product of
// the odd elements is added by a fused multiply-add, then that of the even elements, where subnormal numbers count as zero. Paths without
// that instruction widen the operands, odd element first, and run the float32 micro-kernels; they keep subnormal numbers.

// emulates reports whether products of a kind have no micro-kernel on the path.
func (b *Backend) emulates(k kind) bool {
	return k == paired && !b.bf16 || k == widened && b.isa != avx512
}

// widenedPanel runs a tile of floats by words. A last element without a partner takes a step of its own, so that nothing is read beyond
// the rows of a.
func (b *Backend) widenedPanel(p *product, t tile, k0 int) {
	odd := t.k & 1
	last := t
	if t.k >>= 1; t.k > 0 {
		avx512WidenedRows(&t)
		last.acc = 1
	}
	if odd == 0 {
		return
	}
	var row [panel]float32
	for j, w := range unsafe.Slice((*float32)(unsafe.Add(t.b, uintptr(t.k)*t.ldb)), panel) {
		row[j], _ = unpair(w)
	}
	last.a, last.b, last.k = unsafe.Add(last.a, 8*t.k), unsafe.Pointer(&row[0]), 1
	b.panelRows(&last)
}

// blockEmulated is block over widened copies of its operands.
func (b *Backend) blockEmulated(w *worker, p *product, m0, m1, j0, j1 int) {
	n, ldc, rows := p.size.N, p.rowC(), m1-m0
	for k0 := 0; k0 < p.size.K; k0 += inner {
		t := p.tile(m0, m1, k0)
		words := (t.k + 1) / 2
		if p.kind == paired {
			k := 2 * t.k
			words = t.k
			a := w.buffer(widenedA, rows*k)
			if p.transposed {
				widenCols(a, t.a, t.lda, t.k, rows)
				t.lda = 4 * uintptr(rows)
			} else {
				widenRows(a, t.a, t.lda, rows, t.k)
				t.lda = 4 * uintptr(k)
			}
			t.a, t.k = unsafe.Pointer(&a[0]), k
		}
		wide := w.buffer(widenedB, 2*words*panel)
		t.ldb, t.b = 4*panel, unsafe.Pointer(&wide[0])
		for j := j0; j < j1; j++ {
			t.n, t.c = min(panel, n-j*panel), unsafe.Pointer(&p.c[m0*ldc+j*panel])
			b.widenPanel(wide, p.b[j*p.jump+p.innerB(k0):], words, p.kind == paired)
			if p.transposed {
				b.panelCols(&t)
			} else {
				b.panelRows(&t)
			}
		}
	}
}

// unpair splits a word into its elements.
func unpair(w float32) (even, odd float32) {
	bits := *(*uint32)(unsafe.Pointer(&w))
	return widenBF16(uint16(bits)), widenBF16(uint16(bits >> 16))
}

// widenPanel turns words of a panel into two rows each, the odd elements' first if oddFirst.
func (b *Backend) widenPanel(dst, src []float32, words int, oddFirst bool) {
	if b.isa != generic && words > 0 {
		first, second := &dst[0], &dst[panel]
		if oddFirst {
			first, second = second, first
		}
		asmWiden(b.isa, first, second, &src[0], words)
		return
	}
	for p := range words {
		even, odd := dst[2*p*panel:(2*p+1)*panel], dst[(2*p+1)*panel:(2*p+2)*panel]
		if oddFirst {
			even, odd = odd, even
		}
		for j, w := range src[p*panel : (p+1)*panel] {
			even[j], odd[j] = unpair(w)
		}
	}
}

// widenRows turns rows of words, stride bytes apart, into rows of twice as many floats, the odd element of a word first.
func widenRows(dst []float32, src unsafe.Pointer, stride uintptr, rows, words int) {
	for r := range rows {
		row := dst[2*r*words : 2*(r+1)*words]
		for p, w := range unsafe.Slice((*float32)(unsafe.Add(src, uintptr(r)*stride)), words) {
			row[2*p+1], row[2*p] = unpair(w)
		}
	}
}

// widenCols turns each row of words into a row of their odd elements and one of their even elements.
func widenCols(dst []float32, src unsafe.Pointer, stride uintptr, words, cols int) {
	for p := range words {
		odd, even := dst[2*p*cols:(2*p+1)*cols], dst[(2*p+1)*cols:(2*p+2)*cols]
		for i, w := range unsafe.Slice((*float32)(unsafe.Add(src, uintptr(p)*stride)), cols) {
			even[i], odd[i] = unpair(w)
		}
	}
}

// GemmTNRounded packs the pairs of both operands and multiplies them.
func (b *Backend) GemmTNRounded(s kernels.Stream, c, a, m kernels.View, z kernels.Shape, row []int, accumulate bool) {
	st, op := s.(*stream), "GemmTNRounded"
	x, y := st.halves(op, "a", a, b.RoundedLen(z.K, z.M)), st.halves(op, "b", m, b.RoundedLen(z.K, z.N))
	p := product{kind: paired, c: st.floats(op, "c", c, z.M*z.N), lda: colChunk, ldb: panel, transposed: true, accumulate: accumulate}
	if len(row) == 0 || row[0] != 0 || row[len(row)-1] != z.K {
		st.fail("%s: sequences at %v do not cover %d tokens", op, row, z.K)
	}
	if st.err != nil || z.M == 0 || z.N == 0 {
		return
	}
	p.size = kernels.Shape{M: z.M, N: z.N, K: countPairs(row)}
	p.jump, p.jumpA = panel*p.size.K, colChunk*p.size.K
	w := st.worker()
	p.a = w.buffer(packedA, (z.M+colChunk-1)/colChunk*p.jumpA)
	p.b = w.buffer(packedB, panels(z.N)*p.jump)
	left, right := (z.M+colChunk-1)/colChunk, panels(z.N)
	st.parallel(left+right, func(_ *worker, i int) {
		if i < left {
			b.pairColumns(p.a[i*p.jumpA:(i+1)*p.jumpA], x, row, z.M, i*colChunk, colChunk)
			return
		}
		i -= left
		b.pairColumns(p.b[i*p.jump:(i+1)*p.jump], y, row, z.N, i*panel, panel)
	})
	b.run(st, p)
}

// countPairs is the number of pairs of tokens of sequences at row.
func countPairs(row []int) int {
	n := 0
	for i := range len(row) - 1 {
		n += (row[i+1] - row[i] + 1) / 2
	}
	return n
}

// pairColumns interleaves the tokens of each sequence, for up to width columns of x[tokens,cols] from column j on.
func (b *Backend) pairColumns(dst []float32, x []uint16, row []int, cols, j, width int) {
	ld, n := even(cols), min(width, cols-j)
	for i := range len(row) - 1 {
		t, whole := row[i], (row[i+1]-row[i])/2
		if whole > 0 {
			b.pairRows(dst, x[t*ld+j:], x[(t+1)*ld+j:], ld, n, whole, width)
		}
		dst = dst[whole*width:]
		if (row[i+1]-row[i])&1 == 1 {
			last := x[(row[i+1]-1)*ld+j:]
			for q := range n {
				dst[q] = word(last[q], 0)
			}
			dst = dst[width:]
		}
	}
}

// pairRows interleaves n columns of pairs of rows, 2*ld apart, into rows of width words.
func (b *Backend) pairRows(dst []float32, x, y []uint16, ld, n, pairs, width int) {
	whole := 0
	if b.isa == avx512 {
		if whole = n &^ (lanes - 1); whole > 0 {
			avx512PairRows(&dst[0], 4*uintptr(width), &x[0], &y[0], 4*uintptr(ld), whole/lanes, pairs)
		}
	}
	if whole == n {
		return
	}
	for p := range pairs {
		for q := whole; q < n; q++ {
			dst[p*width+q] = word(x[2*p*ld+q], y[2*p*ld+q])
		}
	}
}
