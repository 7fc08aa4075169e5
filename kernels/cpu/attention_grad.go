package cpu

import (
	"math"
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
	v := attentionGrad{attention: attention{AttentionArgs: a.AttentionArgs}}
	const op = "AttentionGrad"
	v.q, v.out, v.lse = st.floats(op, "Q", a.Q, nq), st.floats(op, "Out", a.Out, nq), st.floats(op, "LSE", a.LSE, a.Rows*g.Heads)
	v.k, v.v, v.dout = st.floats(op, "K", a.K, nk), st.floats(op, "V", a.V, nk), st.floats(op, "DOut", a.DOut, nq)
	v.dq, v.dk, v.dv = st.floats(op, "DQ", a.DQ, nq), st.floats(op, "DK", a.DK, nk), st.floats(op, "DV", a.DV, nk)
	if st.err != nil {
		return
	}
	if st.check(op, g, a.Spans, a.Rows, math.MaxInt); st.err != nil {
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
	n := (size + block*g.Dim - 1) / (block * g.Dim) * block * g.Dim
	kt, vt := w.buffer(0, n), w.buffer(5, n)
	b.transposeBlocks(kt, a.k[kv:kv+size], g.Dim)
	b.transposeBlocks(vt, a.v[kv:kv+size], g.Dim)
	rows := (last - first) * g.Group()
	for f := 0; f < rows; f += queryTile {
		b.attendTileGrad(w, a, spanItem{seq: seq, last: seq, from: f, to: min(rows, f+queryTile)}, h, kt, vt)
	}
}

// transposeBlocks stores x[n,dim] as blocks of [dim, block].
func (b *Backend) transposeBlocks(xt, x []float32, dim int) {
	r := 0
	if b.isa == avx512 && dim%lanes == 0 {
		for ; (r+lanes)*dim <= len(x); r += lanes {
			avx512Transpose(&xt[r/block*block*dim+r%block], 4*block, &x[r*dim], 4*uintptr(dim), dim/lanes)
		}
	}
	for ; r*dim < len(x); r++ {
		dst := xt[r/block*block*dim:]
		for d, e := range x[r*dim : (r+1)*dim] {
			dst[d*block+r%block] = e
		}
	}
}

// attendTileGrad adds a tile of query rows to dk and dv, and writes its dq.
func (b *Backend) attendTileGrad(w *worker, a *attentionGrad, it spanItem, h int, kt, vt []float32) {
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
	for j := 0; j*block <= last; j++ {
		kv, n := ((h*a.Rows)+first+j*block)*g.Dim, min(block, last+1-j*block) // what lies behind the tile's last row adds zeros
		see := w.valid(0, it.from, it.to, group, j)
		b.scores(p, q, kt[j*block*g.Dim:(j+1)*block*g.Dim], see, n, g.Dim)
		b.scores(dp, dout, vt[j*block*g.Dim:(j+1)*block*g.Dim], see, n, g.Dim)
		b.probRows(p, dp, see, lse, sums)
		b.weigh(dq, dp, a.k[kv:kv+n*g.Dim], see, n, g.Dim, j > 0)
		b.addTransposed(a.dv[kv:kv+n*g.Dim], p, dout, see, n, g.Dim)
		b.addTransposed(a.dk[kv:kv+n*g.Dim], dp, q, see, n, g.Dim)
	}
}

// addTransposed is c[n,dim] += p[rows, n of block]^T x[rows,dim], where p is zero at positions that a row does not see: row r sees the first
// see[r], ascending. Positions go by register tiles where the first rows do not see all of them, so that these rows are left out.
func (b *Backend) addTransposed(c, p, x []float32, see []int32, n, dim int) {
	step, row := n, 0
	if int(see[0]) < n {
		step = tileRows
	}
	for i := 0; i < n; i += step {
		for row < len(see) && int(see[row]) <= i {
			row++
		}
		if row == len(see) {
			return
		}
		t := tile{a: unsafe.Pointer(&p[row*block+i]), lda: 4 * block, ldb: 4 * uintptr(dim), ldc: 4 * uintptr(dim), m: min(step, n-i), k: len(see) - row, acc: 1}
		for j := 0; j < dim; j += panel {
			t.n, t.b, t.c = min(panel, dim-j), unsafe.Pointer(&x[row*dim+j]), unsafe.Pointer(&c[i*dim+j])
			b.panelCols(&t)
		}
	}
}
