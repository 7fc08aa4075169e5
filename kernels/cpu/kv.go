package cpu

import (
	"sort"
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// widenedKV is the scratch slot of a block of keys or values that has been widened; attention uses those below.
const widenedKV = 3

// kvCache is one layer's blocks of keys, or of values, as floats or as bfloat16.
type kvCache struct {
	floats []float32
	halves []uint16
}

// cache resolves a view of blocks of either type.
func (s *stream) cache(op, name string, v kernels.View) kvCache {
	if dtype(v) == kernels.BF16 {
		return kvCache{halves: s.halves(op, name, v, v.Len)}
	}
	return kvCache{floats: s.floats(op, name, v, v.Len)}
}

func (c kvCache) len() int { return max(len(c.floats), len(c.halves)) }

// block is n elements from at on as floats; those of bfloat16 are widened into w's scratch memory.
func (c kvCache) block(b *Backend, w *worker, at, n int) []float32 {
	if c.halves == nil {
		return c.floats[at : at+n]
	}
	x := w.buffer(widenedKV, n)
	b.widenRow(x, c.halves[at:at+n])
	return x
}

// pointer is the address of element at and the bytes of an element.
func (c kvCache) pointer(at int) (unsafe.Pointer, uintptr) {
	if c.halves != nil {
		return unsafe.Pointer(&c.halves[at]), 2
	}
	return unsafe.Pointer(&c.floats[at]), 4
}

// widenRow turns bfloat16 into floats.
func (b *Backend) widenRow(dst []float32, src []uint16) {
	n := 0
	if b.isa == avx512 {
		if n = len(src) &^ (lanes - 1); n > 0 {
			avx512WidenRow(&dst[0], &src[0], n/lanes)
		}
	}
	for i := n; i < len(src); i++ {
		dst[i] = widenBF16(src[i])
	}
}

// storing is StoreKV with its operands, in items of chunk rows.
type storing struct {
	kernels.KVArgs
	backend *Backend
	k, v    []float32
	kc, vc  kvCache
	chunk   int
}

func (x *storing) run(w *worker, i int) {
	from, to := i*x.chunk, min(x.Rows, (i+1)*x.chunk)
	seq := sort.Search(x.Spans.Sequences()-1, func(k int) bool { return x.Spans.Row[k+1] > from })
	at := x.place(from, seq)
	x.fetch(at)
	for r := from; r < to; r++ {
		here := at
		if r+1 < to {
			for r+1 >= x.Spans.Row[seq+1] {
				seq++
			}
			at = x.place(r+1, seq)
			x.fetch(at)
		}
		x.backend.storeRow(w, x, r, here)
	}
}

// place is where a row of a sequence goes: the first element of its block, and its position in there.
type place struct{ at, column int }

func (x *storing) place(r, seq int) place {
	pos := x.Spans.Start[seq] + r - x.Spans.Row[seq]
	return place{int(x.Spans.Table[x.Spans.TableAt[seq]+pos/block]) * x.Geometry.BlockFloats(), pos % block}
}

// fetch asks for the memory of a row's keys: each element of a key lies in a line of its own, and the stores would wait for one line after the other.
func (x *storing) fetch(p place) {
	if x.backend.isa != avx512 {
		return
	}
	from, size := x.kc.pointer(p.at + p.column)
	avx512FetchColumn(from, block*size, x.Geometry.KVHeads*x.Geometry.Dim)
}

// StoreKV writes rows into their blocks, keys transposed. Two spans never share a block that one of them writes.
func (b *Backend) StoreKV(s kernels.Stream, a kernels.KVArgs) {
	st, g := s.(*stream), a.Geometry
	n := a.Rows * g.KVHeads * g.Dim
	x := storing{KVArgs: a, backend: b, chunk: max(1, min(block, a.Rows/(4*st.threads()))), k: st.floats("StoreKV", "K", a.K, n), v: st.floats("StoreKV", "V", a.V, n),
		kc: st.cache("StoreKV", "KCache", a.KCache), vc: st.cache("StoreKV", "VCache", a.VCache)}
	if dtype(a.KCache) != dtype(a.VCache) {
		st.fail("StoreKV: keys are cached as %s, values as %s", dtype(a.KCache), dtype(a.VCache))
	}
	if st.err != nil {
		return
	}
	if st.check("StoreKV", g, a.Spans, a.Rows, min(x.kc.len(), x.vc.len())/g.BlockFloats()); st.err != nil {
		return
	}
	st.store = x
	st.do(job{items: (a.Rows + x.chunk - 1) / x.chunk, op: &st.store})
}

// storeRow stores one row's keys and values of all heads.
func (b *Backend) storeRow(w *worker, x *storing, r int, p place) {
	g, c := x.Geometry, p.column
	for h := range g.KVHeads {
		row := (h*x.Rows + r) * g.Dim
		k, v := x.k[row:row+g.Dim], x.v[row:row+g.Dim]
		at := p.at + h*g.Dim*block
		if x.kc.halves == nil {
			for d, e := range k {
				x.kc.floats[at+d*block+c] = e
			}
			copy(x.vc.floats[at+c*g.Dim:], v)
			continue
		}
		rounded, value := w.halves(g.Dim), x.vc.halves[at+c*g.Dim:at+(c+1)*g.Dim]
		b.roundRow(rounded, k)
		b.widenRow(k, rounded)
		for d, e := range rounded {
			x.kc.halves[at+d*block+c] = e
		}
		b.roundRow(value, v)
		b.widenRow(v, value)
	}
}
