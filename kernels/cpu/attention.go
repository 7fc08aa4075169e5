package cpu

import (
	"math"
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// queryTile is the number of query rows (position, head of the group) that share a pass over the keys: four register tiles, so that
// 48*64 scores and as many of their gradients fit the first-level cache.
const queryTile = 48

// spanItem is one item of attention: query rows [from, to) of a sequence, for all key-value heads.
type spanItem struct{ seq, from, to int }

// spanItems cuts the query rows of all sequences into tiles. The result is valid until the next call.
func (s *stream) spanItems(p kernels.Spans, group int) []spanItem {
	items := s.items[:0]
	for i := range p.Sequences() {
		n := (p.Row[i+1] - p.Row[i]) * group
		for f := 0; f < n; f += queryTile {
			items = append(items, spanItem{i, f, min(n, f+queryTile)})
		}
	}
	s.items = items
	return items
}

// check refuses spans that do not fit their rows, tables or caches.
func (s *stream) check(op string, g kernels.Geometry, p kernels.Spans, rows, blocks int) {
	n := p.Sequences()
	if g.KVHeads <= 0 || g.Heads%g.KVHeads != 0 {
		s.fail("%s: %d heads over %d key-value heads", op, g.Heads, g.KVHeads)
		return
	}
	if len(p.Row) != n+1 || len(p.TableAt) != n || p.Row[0] != 0 || p.Row[n] != rows {
		s.fail("%s: spans of %d sequences do not cover %d rows", op, n, rows)
		return
	}
	for i := range n {
		end := p.Start[i] + p.Row[i+1] - p.Row[i]
		need := (end + block - 1) / block
		if p.TableAt[i]+need > len(p.Table) {
			s.fail("%s: sequence %d ends at position %d, its table has %d blocks, want %d", op, i, end, len(p.Table)-p.TableAt[i], need)
			return
		}
		for _, b := range p.Table[p.TableAt[i] : p.TableAt[i]+need] {
			if b < 0 || int(b) >= blocks {
				s.fail("%s: sequence %d names block %d, the cache has %d", op, i, b, blocks)
				return
			}
		}
	}
}

// StoreKV writes rows into their blocks, keys transposed. Two spans never share a block that one of them writes.
func (b *Backend) StoreKV(s kernels.Stream, a kernels.KVArgs) {
	st, g := s.(*stream), a.Geometry
	n := a.Rows * g.KVHeads * g.Dim
	k, v := st.floats("StoreKV", "K", a.K, n), st.floats("StoreKV", "V", a.V, n)
	kc, vc := st.atLeast("StoreKV", "KCache", a.KCache, 0), st.atLeast("StoreKV", "VCache", a.VCache, 0)
	if st.err != nil {
		return
	}
	if st.check("StoreKV", g, a.Spans, a.Rows, min(len(kc), len(vc))/g.BlockFloats()); st.err != nil {
		return
	}
	st.parallel(a.Spans.Sequences(), func(_ *worker, i int) {
		for r := a.Spans.Row[i]; r < a.Spans.Row[i+1]; r++ {
			pos := a.Spans.Start[i] + r - a.Spans.Row[i]
			at := int(a.Spans.Table[a.Spans.TableAt[i]+pos/block]) * g.BlockFloats()
			for h := range g.KVHeads {
				row, c := (h*a.Rows+r)*g.Dim, pos%block
				dst := kc[at+h*g.Dim*block : at+(h+1)*g.Dim*block]
				for d, x := range k[row : row+g.Dim] {
					dst[d*block+c] = x
				}
				copy(vc[at+(h*block+c)*g.Dim:at+(h*block+c+1)*g.Dim], v[row:row+g.Dim])
			}
		}
	})
}

// attention holds the resolved operands of Attention.
type attention struct {
	*kernels.AttentionArgs
	q, kc, vc, out, lse []float32
	rounded             []uint16
}

// Attention gives each item a tile of query rows.
func (b *Backend) Attention(s kernels.Stream, a kernels.AttentionArgs) {
	st, g := s.(*stream), a.Geometry
	v := attention{AttentionArgs: &a}
	v.q = st.floats("Attention", "Q", a.Q, a.Rows*g.Heads*g.Dim)
	v.kc, v.vc = st.atLeast("Attention", "KCache", a.KCache, 0), st.atLeast("Attention", "VCache", a.VCache, 0)
	if !a.Out.Absent() {
		v.out = st.floats("Attention", "Out", a.Out, a.Rows*g.Heads*g.Dim)
	}
	if !a.Rounded.Absent() {
		v.rounded = st.halves("Attention", "Rounded", a.Rounded, b.RoundedLen(a.Rows, g.Heads*g.Dim))
	}
	if !a.LSE.Absent() {
		v.lse = st.floats("Attention", "LSE", a.LSE, a.Rows*g.Heads)
	}
	if st.err != nil {
		return
	}
	if st.check("Attention", g, a.Spans, a.Rows, min(len(v.kc), len(v.vc))/g.BlockFloats()); st.err != nil {
		return
	}
	items := st.spanItems(a.Spans, g.Group())
	heads := len(items) * g.KVHeads
	grain := max(1, min(4*g.KVHeads, heads/(4*st.threads())))
	st.rows(heads, grain, func(w *worker, from, to int) {
		for i := from; i < to; i++ {
			b.attend(w, &v, items[i/g.KVHeads], i%g.KVHeads)
		}
	})
}

// attend runs one tile of query rows of one key-value head over the blocks it sees.
func (b *Backend) attend(w *worker, a *attention, it spanItem, h int) {
	g, rows := a.Geometry, it.to-it.from
	group := g.Group()
	base := (h*a.Rows + a.Spans.Row[it.seq]) * group
	q := a.q[(base+it.from)*g.Dim : (base+it.to)*g.Dim]
	scores, acc := w.buffer(0, queryTile*block), w.buffer(1, queryTile*g.Dim)
	state := w.buffer(2, 3*queryTile)
	m, l, alpha := state[:rows], state[queryTile:queryTile+rows], state[2*queryTile:2*queryTile+rows]
	for r := range rows {
		m[r], l[r] = float32(math.Inf(-1)), 0
	}
	last := a.Spans.Start[it.seq] + (it.to-1)/group
	table := a.Spans.Table[a.Spans.TableAt[it.seq]:]
	for j := 0; j*block <= last; j++ {
		at := int(table[j])*g.BlockFloats() + h*g.Dim*block
		n := w.valid(a.Spans.Start[it.seq], it, group, j)
		seen := min(block, last+1-j*block)
		b.scores(scores, q, a.kc[at:at+g.Dim*block], rows, seen, g.Dim)
		b.softmaxRows(scores, n, m, l, alpha)
		if j > 0 {
			for r, f := range alpha {
				if f != 1 {
					b.scale(acc[r*g.Dim:(r+1)*g.Dim], f)
				}
			}
		}
		b.weigh(acc, scores, a.vc[at:at+g.Dim*block], rows, seen, g.Dim, j > 0)
	}
	b.finish(a, it, h, acc, m, l)
}

// valid returns how many positions of block j each query row sees; it can be below 0 or above block.
func (w *worker) valid(start int, it spanItem, group, j int) []int32 {
	n := w.counts(it.to - it.from)
	for r := range n {
		n[r] = int32(start + (it.from+r)/group + 1 - j*block)
	}
	return n
}

// scores is s[rows,block] = q[rows,dim] kt[dim,block] in the first n columns or more.
func (b *Backend) scores(s, q, kt []float32, rows, n, dim int) {
	t := tile{a: unsafe.Pointer(&q[0]), lda: 4 * uintptr(dim), ldb: 4 * block, ldc: 4 * block, m: rows, k: dim, n: panel,
		b: unsafe.Pointer(&kt[0]), c: unsafe.Pointer(&s[0])}
	if b.isa == avx512 && rows <= wideRows && n > panel {
		avx512WideRows(&t)
		return
	}
	for j := 0; j < n; j += panel {
		t.b, t.c = unsafe.Pointer(&kt[j]), unsafe.Pointer(&s[j])
		b.panelRows(&t)
	}
}

// weigh is acc[rows,dim] (+)= p[rows,n of block] v[n,dim].
func (b *Backend) weigh(acc, p, v []float32, rows, n, dim int, accumulate bool) {
	t := tile{a: unsafe.Pointer(&p[0]), lda: 4 * block, ldb: 4 * uintptr(dim), ldc: 4 * uintptr(dim), m: rows, k: n}
	if accumulate {
		t.acc = 1
	}
	for j := 0; j < dim; {
		t.n, t.b, t.c = min(panel, dim-j), unsafe.Pointer(&v[j]), unsafe.Pointer(&acc[j])
		if b.isa == avx512 && rows <= wideRows && dim-j >= wideCols {
			avx512WideRows(&t)
			j += wideCols
			continue
		}
		b.panelRows(&t)
		j += panel
	}
}

// A wide tile is wideCols columns of up to wideRows rows, read from end to end: the shape of decoding, where a few query rows meet keys and
// values that come from memory. Its chains are those of panels.
const (
	wideRows = 6
	wideCols = 64
)

// finish divides by the sums and puts each head of each row in its place.
func (b *Backend) finish(a *attention, it spanItem, h int, acc, m, l []float32) {
	g := a.Geometry
	group := g.Group()
	for r := range it.to - it.from {
		row, head := a.Spans.Row[it.seq]+(it.from+r)/group, h*group+(it.from+r)%group
		o := acc[r*g.Dim : (r+1)*g.Dim]
		b.scale(o, 1/l[r])
		if a.out != nil {
			copy(a.out[(row*g.Heads+head)*g.Dim:], o)
		}
		if a.rounded != nil {
			at := row*even(g.Heads*g.Dim) + head*g.Dim
			b.roundRow(a.rounded[at:at+g.Dim], o)
		}
		if a.lse != nil {
			a.lse[(h*a.Rows+a.Spans.Row[it.seq])*group+it.from+r] = m[r] + float32(math.Log(float64(l[r])))
		}
	}
}
