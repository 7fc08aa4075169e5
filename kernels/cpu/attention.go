package cpu

import (
	"math"
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// attention holds the resolved operands of Attention.
type attention struct {
	kernels.AttentionArgs
	q, out, lse []float32
	kc, vc      kvCache
	rounded     []uint16
}

// Attention gives each item a tile of query rows.
func (b *Backend) Attention(s kernels.Stream, a kernels.AttentionArgs) {
	st, g := s.(*stream), a.Geometry
	v := attention{AttentionArgs: a}
	v.q = st.floats("Attention", "Q", a.Q, a.Rows*g.Heads*g.Dim)
	v.kc, v.vc = st.cache("Attention", "KCache", a.KCache), st.cache("Attention", "VCache", a.VCache)
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
	if st.check("Attention", g, a.Spans, a.Rows, min(v.kc.len(), v.vc.len())/g.BlockFloats()); st.err != nil {
		return
	}
	x := &st.attends
	x.attention, x.backend = v, b
	x.tiles = appendTiles(x.tiles[:0], a.Spans, g.Group())
	heads := len(x.tiles) * g.KVHeads
	x.grain = max(1, min(4*g.KVHeads, heads/(4*st.threads())))
	st.do(job{items: (heads + x.grain - 1) / x.grain, op: x})
}

// attending is Attention with its operands, in items of grain heads of tiles.
type attending struct {
	attention
	backend *Backend
	tiles   []spanItem
	grain   int
}

// run takes the last tiles first: those see the most keys, and short items at the end let threads end together.
func (x *attending) run(w *worker, i int) {
	n := x.Geometry.KVHeads
	last := len(x.tiles)*n - 1
	for k := i * x.grain; k < min(last+1, (i+1)*x.grain); k++ {
		x.backend.attend(w, &x.attention, x.tiles[(last-k)/n], (last-k)%n)
	}
}

// queries are query rows of one key-value head with what they have come to so far.
type queries struct {
	q, acc      []float32 // [rows, dim]
	m, l, alpha []float32 // [rows]: running maximum, running sum, factor of the last block
}

// rows returns some of the rows.
func (q queries) rows(from, to, dim int) queries {
	return queries{q.q[from*dim : to*dim], q.acc[from*dim : to*dim], q.m[from:to], q.l[from:to], q.alpha[from:to]}
}

// attend runs one tile of query rows of one key-value head over the blocks it sees: first those that its sequences share, then each
// sequence's own.
func (b *Backend) attend(w *worker, a *attention, it spanItem, h int) {
	g, rows := a.Geometry, it.to-it.from
	group := g.Group()
	base := (h*a.Rows+a.Spans.Row[it.seq])*group + it.from
	state := w.buffer(2, 3*queryTile)
	all := queries{a.q[base*g.Dim : (base+rows)*g.Dim], w.buffer(1, queryTile*g.Dim)[:rows*g.Dim],
		state[:rows], state[queryTile : queryTile+rows], state[2*queryTile : 2*queryTile+rows]}
	for r := range rows {
		all.m[r], all.l[r] = float32(math.Inf(-1)), 0
	}
	for j := range it.shared {
		n := w.counts(rows)
		for r := range n {
			n[r] = block
		}
		b.visit(w, a, all, it.seq, h, j, block, n)
	}
	for seq := it.seq; seq <= it.last; seq++ {
		own, from, to := all, it.from, it.to
		if it.last > it.seq {
			from, to = 0, group
			own = all.rows((seq-it.seq)*group, (seq-it.seq+1)*group, g.Dim)
		}
		last := a.Spans.Start[seq] + (to-1)/group
		for j := it.shared; j*block <= last; j++ {
			b.visit(w, a, own, seq, h, j, min(block, last+1-j*block), w.valid(a.Spans.Start[seq], from, to, group, j))
		}
	}
	b.finish(a, it, h, all.acc, all.m, all.l)
}

// visit adds block j of a sequence, of which the rows see the first n[r] positions and none more than seen.
func (b *Backend) visit(w *worker, a *attention, q queries, seq, h, j, seen int, n []int32) {
	dim, rows := a.Geometry.Dim, len(n)
	at := int(a.Spans.Table[a.Spans.TableAt[seq]+j])*a.Geometry.BlockFloats() + h*dim*block
	scores := w.buffer(0, queryTile*block)
	if b.isa == avx512 && rows <= wideRows && (a.kc.halves != nil || seen > panel) {
		b.wideScores(scores, q.q, a.kc, at, rows, dim)
	} else {
		b.scores(scores, q.q, a.kc.block(b, w, at, dim*block), n, seen, dim)
	}
	b.softmaxRows(scores, n, q.m, q.l, q.alpha)
	if j > 0 {
		for r, f := range q.alpha {
			if f != 1 {
				b.scale(q.acc[r*dim:(r+1)*dim], f)
			}
		}
	}
	if b.isa == avx512 && rows <= wideRows && dim%wideCols == 0 {
		b.wideWeigh(q.acc, scores, a.vc, at, rows, seen, dim, j > 0)
	} else {
		b.weigh(q.acc, scores, a.vc.block(b, w, at, seen*dim), n, seen, dim, j > 0)
	}
}

// valid returns how many positions of block j each of the query rows [from, to) sees; it can be below 0 or above block.
func (w *worker) valid(start, from, to, group, j int) []int32 {
	n := w.counts(to - from)
	for r := range n {
		n[r] = int32(start + (from+r)/group + 1 - j*block)
	}
	return n
}

// steps cuts rows, of which row r sees the first n[r] positions, n ascending, and none more than seen, into runs: all rows when all of them see
// the same, register tiles otherwise. It gives each run what its last row sees; a run that sees nothing is left out.
func steps(n []int32, seen int, f func(from, to, seen int)) {
	step := len(n)
	if int(n[0]) < seen {
		step = tileRows
	}
	for from := 0; from < len(n); from += step {
		to := min(len(n), from+step)
		if k := min(seen, int(n[to-1])); k > 0 {
			f(from, to, k)
		}
	}
}

// scores is s[rows,block] = q[rows,dim] kt[dim,block] where rows see positions; see steps.
func (b *Backend) scores(s, q, kt []float32, n []int32, seen, dim int) {
	steps(n, seen, func(from, to, seen int) {
		t := tile{a: unsafe.Pointer(&q[from*dim]), lda: 4 * uintptr(dim), ldb: 4 * block, ldc: 4 * block, m: to - from, k: dim}
		for j := 0; j < seen; j += panel {
			t.n, t.b, t.c = min(panel, seen-j), unsafe.Pointer(&kt[j]), unsafe.Pointer(&s[from*block+j])
			b.panelRows(&t)
		}
	})
}

// weigh is acc[rows,dim] (+)= p[rows,seen of block] v[seen,dim], where p is zero at positions that a row does not see. What does not accumulate
// has rows that see something.
func (b *Backend) weigh(acc, p, v []float32, n []int32, seen, dim int, accumulate bool) {
	steps(n, seen, func(from, to, seen int) {
		t := tile{a: unsafe.Pointer(&p[from*block]), lda: 4 * block, ldb: 4 * uintptr(dim), ldc: 4 * uintptr(dim), m: to - from, k: seen}
		if accumulate {
			t.acc = 1
		}
		for j := 0; j < dim; j += panel {
			t.n, t.b, t.c = min(panel, dim-j), unsafe.Pointer(&v[j]), unsafe.Pointer(&acc[from*dim+j])
			b.panelRows(&t)
		}
	})
}

// A wide tile is wideCols columns of up to wideRows rows, read from end to end: the shape of decoding, where a few query rows meet keys and
// values that come from memory. Its chains are those of panels.
const (
	wideRows = 6
	wideCols = 64
)

func (c kvCache) wideTile(t *tile) {
	if c.halves != nil {
		avx512WideHalves(t)
		return
	}
	avx512WideRows(t)
}

// wideScores is scores over the block at, in all of its columns.
func (b *Backend) wideScores(s, q []float32, keys kvCache, at, rows, dim int) {
	from, size := keys.pointer(at)
	keys.wideTile(&tile{a: unsafe.Pointer(&q[0]), b: from, c: unsafe.Pointer(&s[0]), lda: 4 * uintptr(dim), ldb: block * size, ldc: 4 * block,
		m: rows, k: dim})
}

// wideWeigh is weigh over the block at; wideCols divides dim.
func (b *Backend) wideWeigh(acc, p []float32, values kvCache, at, rows, n, dim int, accumulate bool) {
	t := tile{a: unsafe.Pointer(&p[0]), lda: 4 * block, ldc: 4 * uintptr(dim), m: rows, k: n}
	if accumulate {
		t.acc = 1
	}
	for j := 0; j < dim; j += wideCols {
		from, size := values.pointer(at + j)
		t.b, t.ldb, t.c = from, uintptr(dim)*size, unsafe.Pointer(&acc[j])
		values.wideTile(&t)
	}
}

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
