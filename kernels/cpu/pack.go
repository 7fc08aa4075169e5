package cpu

import (
	"math"
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// The right operand of a product is packed in panels of 32 columns, which are zero beyond the last. A panel of floats is [k][32]; one of
// bfloat16 is [ceil(k/2)][32] words, each the elements of rows 2p (lower half) and 2p+1 of its column.

// PackedLen rounds n up to whole panels, and k to whole pairs.
func (b *Backend) PackedLen(t kernels.DType, n, k int) int {
	if t == kernels.BF16 {
		k = even(k)
	}
	return panels(n) * panel * k
}

// panels is the number of panels of n columns.
func panels(n int) int { return (n + panel - 1) / panel }

// Pack packs w[n,k] transposed. Each item is a panel.
func (b *Backend) Pack(s kernels.Stream, packed, w kernels.View, n, k int) {
	st := s.(*stream)
	dst, src, rounded := st.packing("Pack", b, packed, w, n, k)
	if st.err != nil || k == 0 {
		return
	}
	size := len(dst) / max(1, panels(n))
	st.parallel(panels(n), func(wk *worker, j int) {
		rows := min(panel, n-j*panel)
		from, to := src[j*panel*k:(j*panel+rows)*k], dst[j*size:(j+1)*size]
		if !rounded {
			b.packTransposed(to, from, k, rows, k)
			return
		}
		h := wk.halves(panel * even(k))
		for r := range rows {
			b.roundRow(h[r*even(k):(r+1)*even(k)], from[r*k:(r+1)*k])
		}
		b.packTransposed(to, words(h), even(k)/2, rows, even(k)/2)
	})
}

// packRowsItem is the number of rows that an item of PackNN takes: whole pairs.
const packRowsItem = 64

// PackNN packs w[k,n]. Each item is some rows, which it reads from end to end.
func (b *Backend) PackNN(s kernels.Stream, packed, w kernels.View, n, k int) {
	st := s.(*stream)
	dst, src, rounded := st.packing("PackNN", b, packed, w, n, k)
	if st.err != nil || n == 0 {
		return
	}
	size := len(dst) / panels(n)
	st.rows(k, packRowsItem, func(_ *worker, from, to int) {
		if !rounded {
			b.packRows(dst, src, from, to, n, size)
			return
		}
		for p := from; p < to; p += 2 {
			x, y := src[p*n:(p+1)*n], []float32(nil)
			if p+1 < k {
				y = src[(p+1)*n : (p+2)*n]
			}
			b.packPair(dst[p/2*panel:], x, y, size)
		}
	})
}

// packing resolves the operands of Pack and PackNN; dst is floats, or words of two bfloat16 if rounded.
func (s *stream) packing(op string, b *Backend, packed, w kernels.View, n, k int) (dst, src []float32, rounded bool) {
	if rounded = dtype(packed) == kernels.BF16; rounded {
		dst = words(s.halves(op, "packed", packed, b.PackedLen(kernels.BF16, n, k)))
	} else {
		dst = s.floats(op, "packed", packed, b.PackedLen(kernels.F32, n, k))
	}
	return dst, s.floats(op, "w", w, n*k), rounded
}

// packTransposed writes rows of words, ld apart, as the columns of a panel of k rows.
func (b *Backend) packTransposed(dst, src []float32, k, rows, ld int) {
	q, whole := 0, 0
	if b.isa == avx512 && k >= lanes {
		for whole = k &^ (lanes - 1); q+lanes <= rows; q += lanes {
			avx512Transpose(&dst[q], 4*panel, &src[q*ld], 4*uintptr(ld), whole/lanes)
		}
	}
	for r := range panel {
		from := 0
		if r < q {
			from = whole
		}
		if r >= rows {
			for p := range k {
				dst[p*panel+r] = 0
			}
			continue
		}
		for p, v := range src[r*ld+from : r*ld+k] {
			dst[(from+p)*panel+r] = v
		}
	}
}

// packRows copies rows [from, to) of src[k,n] into panels that are size floats apart.
func (b *Backend) packRows(dst, src []float32, from, to, n, size int) {
	for p := from; p < to; p++ {
		row, at := src[p*n:(p+1)*n], p*panel
		if whole := n / panel; whole > 0 && b.isa == avx512 {
			avx512CopyPanels(&dst[at], 4*uintptr(size), &row[0], whole)
			row, at = row[whole*panel:], at+whole*size
		}
		for ; len(row) > 0; row, at = row[min(len(row), panel):], at+size {
			last := dst[at : at+panel]
			clear(last[copy(last, row):])
		}
	}
}

// packPair rounds a pair of rows into panels that are size words apart; a nil y is zero.
func (b *Backend) packPair(dst, x, y []float32, size int) {
	q := 0
	if b.isa == avx512 && y != nil {
		if whole := len(x) / panel; whole > 0 {
			avx512RoundPair(&dst[0], 4*uintptr(size), &x[0], &y[0], whole)
			q = whole * panel
		}
	}
	for ; q < panels(len(x))*panel; q++ {
		var lo, hi uint16
		if q < len(x) {
			lo = roundBF16(x[q])
			if y != nil {
				hi = roundBF16(y[q])
			}
		}
		dst[q/panel*size+q%panel] = word(lo, hi)
	}
}

// word holds two bfloat16 elements.
func word(lo, hi uint16) float32 { return math.Float32frombits(uint32(lo) | uint32(hi)<<16) }

// halves returns n bfloat16 elements of scratch memory, with undefined content.
func (w *worker) halves(n int) []uint16 {
	x := w.buffer(rowScratch, (n+1)/2)
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), n)
}
