package cpu

import (
	"math"
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// Rounded rows lie one after the other, each padded with a zero to even length, so that a row is words of two elements: the even column
// in the lower half. This file makes them.

// roundBF16 rounds to nearest, ties to even. A NaN becomes quiet.
func roundBF16(x float32) uint16 {
	bits := math.Float32bits(x)
	if x != x {
		return uint16((bits | 0x400000) >> 16)
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func widenBF16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// even is the length of a rounded row.
func even(cols int) int { return cols + cols&1 }

// RoundedLen counts padding.
func (b *Backend) RoundedLen(rows, cols int) int { return rows * even(cols) }

// Halves allocates n zeroed bfloat16 elements.
func (b *Backend) Halves(n int) (kernels.View, error) {
	x := make([]uint16, n)
	adviseHuge(x)
	return kernels.View{Mem: &memory{halves: x}, Len: n}, nil
}

// halves resolves a view that must hold exactly n bfloat16 elements.
func (s *stream) halves(op, name string, v kernels.View, n int) []uint16 {
	m, ok := v.Mem.(*memory)
	if !ok || v.Len != n || v.Off < 0 || v.Off+v.Len > len(m.halves) {
		s.fail("%s: %s holds %d elements of %s, want %d of bfloat16", op, name, v.Len, dtype(v), n)
		return nil
	}
	return m.halves[v.Off : v.Off+v.Len : v.Off+v.Len]
}

// dtype is the type of a view's elements; an absent view passes for float32.
func dtype(v kernels.View) kernels.DType {
	if v.Absent() {
		return kernels.F32
	}
	return v.Mem.DType()
}

// words sees pairs of bfloat16 as 32-bit words.
func words(x []uint16) []float32 {
	if len(x) < 2 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&x[0])), len(x)/2)
}

// RoundRows rounds rows.
func (b *Backend) RoundRows(s kernels.Stream, dst, x kernels.View, rows, cols int) {
	st := s.(*stream)
	d, xx := st.halves("RoundRows", "dst", dst, b.RoundedLen(rows, cols)), st.floats("RoundRows", "x", x, rows*cols)
	if st.err != nil {
		return
	}
	st.rows(rows, rowsOf(cols), func(_ *worker, from, to int) {
		for r := from; r < to; r++ {
			b.roundRow(d[r*even(cols):(r+1)*even(cols)], xx[r*cols:(r+1)*cols])
		}
	})
}

// roundRow rounds one row to its padded place.
func (b *Backend) roundRow(dst []uint16, x []float32) {
	n := 0
	if b.isa == avx512 {
		if n = b.whole(len(x)); n > 0 {
			avx512RoundRow(&dst[0], &x[0], n/lanes)
		}
	}
	for i := n; i < len(x); i++ {
		dst[i] = roundBF16(x[i])
	}
	if len(dst) > len(x) {
		dst[len(x)] = 0
	}
}

// matrix is a result that an operation leaves as float32 or as rounded rows.
type matrix struct {
	cols   int
	floats []float32
	halves []uint16
}

func (s *stream) matrix(op, name string, b *Backend, v kernels.View, rows, cols int) matrix {
	if dtype(v) == kernels.BF16 {
		return matrix{cols: cols, halves: s.halves(op, name, v, b.RoundedLen(rows, cols))}
	}
	return matrix{cols: cols, floats: s.floats(op, name, v, rows*cols)}
}

// row is where row r is computed: its place, or scratch memory from which store rounds it.
func (m *matrix) row(w *worker, r int) []float32 {
	if m.halves == nil {
		return m.floats[r*m.cols : (r+1)*m.cols]
	}
	return w.buffer(rowScratch, m.cols)
}

func (m *matrix) store(b *Backend, r int, row []float32) {
	if m.halves != nil {
		b.roundRow(m.halves[r*even(m.cols):(r+1)*even(m.cols)], row)
	}
}
