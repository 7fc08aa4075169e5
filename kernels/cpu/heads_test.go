package cpu

import (
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

// TestHeadsInGroupsHaveTheBitsOfHeadsOneByOne: some paths have loops for several heads of a width that fills registers.
func TestHeadsInGroupsHaveTheBitsOfHeadsOneByOne(t *testing.T) {
	const rows, positions, eps = 5, 9, 1e-6
	onEveryPath(t, func(b *bench) {
		for _, g := range []kernels.Geometry{{Heads: 1, KVHeads: 1, Dim: 16}, {Heads: 4, KVHeads: 2, Dim: 32}, {Heads: 6, KVHeads: 2, Dim: 64}, {Heads: 3, KVHeads: 3, Dim: 80}, {Heads: 4, KVHeads: 1, Dim: 24}} {
			d, nq, nk := g.Dim, rows*g.Heads*g.Dim, rows*g.KVHeads*g.Dim
			qkv, wq, wk, cos, sin := b.random(rows*g.QKV()), b.random(d), b.random(d), b.random(positions*d/2), b.random(positions*d/2)
			pos := []int32{3, 0, 8, 1, 2}
			q, k, v := poison(nq), poison(nk), poison(nk)
			a := kernels.HeadsArgs{Geometry: g, Rows: rows, Eps: eps, QKV: b.view(qkv), WQ: b.view(wq), WK: b.view(wk), Positions: b.intView(pos),
				Cos: b.view(cos), Sin: b.view(sin), Q: b.view(q), K: b.view(k), V: b.view(v)}
			b.Heads(b.s, a)
			dq, dk, dv, dqkv := b.random(nq), b.random(nk), b.random(nk), poison(rows*g.QKV())
			dwq, dwk := b.random(d), b.random(d)
			wantWQ, wantWK, oldQ, oldK := slices.Clone(dwq), slices.Clone(dwk), slices.Clone(dq), slices.Clone(dk)
			b.HeadsGrad(b.s, kernels.HeadsGradArgs{HeadsArgs: a, DQ: b.view(dq), DK: b.view(dk), DV: b.view(dv), DQKV: b.view(dqkv),
				DWQ: b.view(dwq), DWK: b.view(dwk)})
			b.sync()
			for r := range rows {
				c, s := cos[int(pos[r])*d/2:(int(pos[r])+1)*d/2], sin[int(pos[r])*d/2:(int(pos[r])+1)*d/2]
				for h := range g.Heads + g.KVHeads {
					x, w, to, at, factor := qkv[r*g.QKV()+h*d:][:d], wk, k, ((h-g.Heads)*rows+r)*d, float32(1)
					old, dw := oldK, wantWK
					if h < g.Heads {
						w, to, at, factor, old, dw = wq, q, queryAt(g, rows, r, h), queryScale(d), oldQ, wantWQ
					}
					y, out, rstd := make([]float32, d), make([]float32, d), b.rstd(x, eps)
					b.scaleWeight(y, x, w, rstd)
					b.rotate(out, y, c, s, 1, factor)
					if !sameBits(out, to[at:at+d]) {
						b.t.Errorf("%+v: row %d, head %d: other bits", g, r, h)
					}
					dy, dx := make([]float32, d), make([]float32, d)
					b.rotate(dy, old[at:at+d], c, s, -1, factor)
					b.normRowGrad(dx, dy, x, w, rstd)
					if !sameBits(dx, dqkv[r*g.QKV()+h*d:][:d]) {
						b.t.Errorf("%+v: row %d, head %d: other bits of the gradient", g, r, h)
					}
					b.scaleWeight(y, x, dy, rstd)
					b.accumulate(dw, y)
				}
			}
			if !sameBits(dwq, wantWQ) || !sameBits(dwk, wantWK) {
				b.t.Errorf("%+v: gradients of the weights are not the sums over rows and heads ascending", g)
			}
		}
	})
}

func TestTheGradientOfANormsWeightsIsOneSumOverRowsAscending(t *testing.T) {
	const rows = 7
	onEveryPath(t, func(b *bench) {
		for _, n := range []int{1, 16, 64, 100, 192} {
			dy, x, rstd, dw := b.random(rows*n), b.random(rows*n), b.random(rows), b.random(n)
			want := slices.Clone(dw)
			b.RMSNormWeightGrad(b.s, b.view(dw), b.view(dy), b.view(x), b.view(rstd), rows, n)
			b.sync()
			for r := range rows {
				b.normWeightGrad(want, dy[r*n:(r+1)*n], x[r*n:(r+1)*n], rstd[r])
			}
			if !sameBits(dw, want) {
				b.t.Errorf("%d columns: other bits", n)
			}
		}
	})
}
