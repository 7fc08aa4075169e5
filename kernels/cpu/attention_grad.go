package cpu

import (
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// attentionGrad holds the resolved operands of AttentionGrad.
type attentionGrad struct {
	attention
	k, v, dout, dq, dk, dv []float32
}

// AttentionGrad gives each item one key-value head of one sequence. It recomputes the probabilities of a tile from the saved log
// of their sum (Dao 2023, alg. 2): with D = sum(dout*out), ds = p (dout v^T - D); then dq = ds k, dk = ds^T q, dv = p^T dout.
func (b *Backend) AttentionGrad(s kernels.Stream, a kernels.AttentionGradArgs) {
	st, g := s.(*stream), a.Geometry
	nq, nk := a.Rows*g.Heads*g.Dim, a.Rows*g.KVHeads*g.Dim
	v := attentionGrad{attention: attention{AttentionArgs: &a.AttentionArgs}}
	const op = "AttentionGrad"
	v.q, v.out, v.lse = st.floats(op, "Q", a.Q, nq), st.floats(op, "Out", a.Out, nq), st.floats(op, "LSE", a.LSE, a.Rows*g.Heads)
	v.kc, v.vc = st.atLeast(op, "KCache", a.KCache, 0), st.atLeast(op, "VCache", a.VCache, 0)
	v.k, v.v, v.dout = st.floats(op, "K", a.K, nk), st.floats(op, "V", a.V, nk), st.floats(op, "DOut", a.DOut, nq)
	v.dq, v.dk, v.dv = st.floats(op, "DQ", a.DQ, nq), st.floats(op, "DK", a.DK, nk), st.floats(op, "DV", a.DV, nk)
	if st.err != nil {
		return
	}
	if st.check(op, g, a.Spans, a.Rows, min(len(v.kc), len(v.vc))/g.BlockFloats()); st.err != nil {
		return
	}
	for i, p := range a.Spans.Start {
		if p != 0 {
			st.fail("%s: sequence %d starts at position %d, want 0", op, i, p)
			return
		}
	}
	st.parallel(a.Spans.Sequences()*g.KVHeads, func(w *worker, i int) { b.attendGrad(w, &v, i/g.KVHeads, i%g.KVHeads) })
}

func (b *Backend) attendGrad(w *worker, a *attentionGrad, seq, h int) {
	g := a.Geometry
	first, last := a.Spans.Row[seq], a.Spans.Row[seq+1]
	kv := (h*a.Rows + first) * g.Dim
	size := (last - first) * g.Dim
	clear(a.dk[kv : kv+size])
	clear(a.dv[kv : kv+size])
	vt := w.buffer(0, (size+block*g.Dim-1)/(block*g.Dim)*block*g.Dim)
	transposeBlocks(vt, a.v[kv:kv+size], g.Dim)
	n := (last - first) * g.Group()
	for f := 0; f < n; f += queryTile {
		b.attendTileGrad(w, a, spanItem{seq: seq, last: seq, from: f, to: min(n, f+queryTile)}, h, vt)
	}
}

// transposeBlocks stores v[n,dim] as blocks of [dim, block].
func transposeBlocks(vt, v []float32, dim int) {
	for r := 0; r*dim < len(v); r++ {
		dst := vt[r/block*block*dim:]
		for d, x := range v[r*dim : (r+1)*dim] {
			dst[d*block+r%block] = x
		}
	}
}

// attendTileGrad adds a tile of query rows to dk and dv, and writes its dq.
func (b *Backend) attendTileGrad(w *worker, a *attentionGrad, it spanItem, h int, vt []float32) {
	g, rows := a.Geometry, it.to-it.from
	group, first, last := g.Group(), a.Spans.Row[it.seq], (it.to-1)/g.Group()
	base := (h*a.Rows+first)*group + it.from
	q, dq, lse := a.q[base*g.Dim:(base+rows)*g.Dim], a.dq[base*g.Dim:(base+rows)*g.Dim], a.lse[base:base+rows]
	p, dp := w.buffer(1, queryTile*block), w.buffer(2, queryTile*block)
	dout, sums := w.buffer(3, queryTile*g.Dim), w.buffer(4, queryTile)[:rows]
	for r := range rows {
		o := ((first+(it.from+r)/group)*g.Heads + h*group + (it.from+r)%group) * g.Dim
		copy(dout[r*g.Dim:(r+1)*g.Dim], a.dout[o:o+g.Dim])
		sums[r] = b.dot(a.dout[o:o+g.Dim], a.out[o:o+g.Dim])
	}
	table := a.Spans.Table[a.Spans.TableAt[it.seq]:]
	for j := 0; j*block <= last; j++ {
		at := int(table[j])*g.BlockFloats() + h*g.Dim*block
		kv, n := ((h*a.Rows)+first+j*block)*g.Dim, min(block, last+1-j*block) // what lies behind the tile's last row adds zeros
		b.scores(p, q, a.kc[at:at+g.Dim*block], rows, n, g.Dim)
		b.scores(dp, dout, vt[j*block*g.Dim:(j+1)*block*g.Dim], rows, n, g.Dim)
		b.probRows(p, dp, w.valid(0, it.from, it.to, group, j), lse, sums)
		b.weigh(dq, dp, a.k[kv:kv+n*g.Dim], rows, n, g.Dim, j > 0)
		b.addTransposed(a.dv[kv:kv+n*g.Dim], p, dout, n, rows, g.Dim)
		b.addTransposed(a.dk[kv:kv+n*g.Dim], dp, q, n, rows, g.Dim)
	}
}

// addTransposed is c[n,dim] += p[rows, n of block]^T x[rows,dim].
func (b *Backend) addTransposed(c, p, x []float32, n, rows, dim int) {
	t := tile{a: unsafe.Pointer(&p[0]), lda: 4 * block, ldb: 4 * uintptr(dim), ldc: 4 * uintptr(dim), m: n, k: rows, acc: 1}
	for j := 0; j < dim; j += panel {
		t.n, t.b, t.c = min(panel, dim-j), unsafe.Pointer(&x[j]), unsafe.Pointer(&c[j])
		b.panelCols(&t)
	}
}
