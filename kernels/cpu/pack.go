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

// Pack packs w[n,k] transposed.
func (b *Backend) Pack(s kernels.Stream, packed, w kernels.View, n, k int) {
	b.pack(s.(*stream), "Pack", packed, w, n, k, func(wk *worker, dst, src []float32, rounded bool, j int) {
		rows := min(panel, n-j*panel)
		src = src[j*panel*k : (j*panel+rows)*k]
		if !rounded {
			b.packTransposed(dst, src, k, rows, k)
			return
		}
		h := wk.halves(panel * even(k))
		for r := range rows {
			b.roundRow(h[r*even(k):(r+1)*even(k)], src[r*k:(r+1)*k])
		}
		b.packTransposed(dst, words(h), even(k)/2, rows, even(k)/2)
	})
}

// PackNN packs w[k,n].
func (b *Backend) PackNN(s kernels.Stream, packed, w kernels.View, n, k int) {
	b.pack(s.(*stream), "PackNN", packed, w, n, k, func(_ *worker, dst, src []float32, rounded bool, j int) {
		cols := min(panel, n-j*panel)
		if rounded {
			b.packPairs(dst, src[j*panel:], k, cols, n)
		} else {
			packRows(dst, src[j*panel:], k, cols, n)
		}
	})
}

// pack runs f for every panel j, whose floats, or words of two bfloat16, are dst.
func (b *Backend) pack(st *stream, op string, packed, w kernels.View, n, k int, f func(w *worker, dst, src []float32, rounded bool, j int)) {
	rounded, size := dtype(packed) == kernels.BF16, panel*k
	var dst []float32
	if rounded {
		size = panel * even(k) / 2
		dst = words(st.halves(op, "packed", packed, b.PackedLen(kernels.BF16, n, k)))
	} else {
		dst = st.floats(op, "packed", packed, b.PackedLen(kernels.F32, n, k))
	}
	src := st.floats(op, "w", w, n*k)
	if st.err != nil || k == 0 {
		return
	}
	st.parallel(panels(n), func(w *worker, j int) { f(w, dst[j*size:(j+1)*size], src, rounded, j) })
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

// packRows copies columns of k rows, ld apart, into a panel.
func packRows(dst, src []float32, k, cols, ld int) {
	for p := range k {
		row := (*[panel]float32)(dst[p*panel:])
		if cols == panel {
			*row = *(*[panel]float32)(src[p*ld:])
			continue
		}
		clear(row[copy(row[:], src[p*ld:p*ld+cols]):])
	}
}

// packPairs rounds columns of k rows of floats, ld apart, into a panel.
func (b *Backend) packPairs(dst, src []float32, k, cols, ld int) {
	for p := 0; p < k; p += 2 {
		x, y := src[p*ld:p*ld+cols], []float32(zeroRow[:cols])
		if p+1 < k {
			y = src[(p+1)*ld : (p+1)*ld+cols]
		}
		row := dst[p/2*panel : (p/2+1)*panel]
		if b.isa == avx512 && cols == panel {
			avx512RoundPair(&row[0], 0, &x[0], &y[0], 1)
			continue
		}
		for q := range x {
			row[q] = word(roundBF16(x[q]), roundBF16(y[q]))
		}
		clear(row[cols:])
	}
}

var zeroRow [panel]float32

// word holds two bfloat16 elements.
func word(lo, hi uint16) float32 { return math.Float32frombits(uint32(lo) | uint32(hi)<<16) }

// halves returns n bfloat16 elements of scratch memory, with undefined content.
func (w *worker) halves(n int) []uint16 {
	x := w.buffer(rowScratch, (n+1)/2)
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), n)
}
