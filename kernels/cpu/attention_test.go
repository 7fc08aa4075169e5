package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

var geometries = []kernels.Geometry{{Heads: 4, KVHeads: 2, Dim: 32}, {Heads: 3, KVHeads: 1, Dim: 10}, {Heads: 2, KVHeads: 2, Dim: 48},
	{Heads: 6, KVHeads: 2, Dim: 64}, {Heads: 8, KVHeads: 1, Dim: 80}, {Heads: 5, KVHeads: 1, Dim: 128}}

// headsOracle is Heads for one row at one position: queries, keys and values, each [heads*dim]. Without weights it only rotates.
func headsOracle(g kernels.Geometry, x, wq, wk, cos, sin []float64, eps float64) (q, k, v []float64) {
	half := g.Dim / 2
	for h := range g.Heads + g.KVHeads {
		w, f := wq, 1/math.Sqrt(float64(g.Dim))
		if h >= g.Heads {
			w, f = wk, 1
		}
		n := x[h*g.Dim : (h+1)*g.Dim]
		if w != nil {
			n = rmsNorm(n, w, eps)
		}
		y := make([]float64, g.Dim)
		for i := range half {
			y[i] = f * (n[i]*cos[i] - n[i+half]*sin[i])
			y[i+half] = f * (n[i+half]*cos[i] + n[i]*sin[i])
		}
		if h < g.Heads {
			q = append(q, y...)
		} else {
			k = append(k, y...)
		}
	}
	return q, k, x[(g.Heads+g.KVHeads)*g.Dim:]
}

// byRow turns [KVHeads, rows*group, dim] into rows of heads.
func byRow(x []float32, rows, kvHeads, group, dim int) []float32 {
	out := make([]float32, len(x))
	for h := range kvHeads {
		for r := range rows {
			n := group * dim
			copy(out[(r*kvHeads+h)*n:(r*kvHeads+h+1)*n], x[(h*rows+r)*n:])
		}
	}
	return out
}

// byHead is the inverse of byRow.
func byHead(x []float32, rows, kvHeads, group, dim int) []float32 {
	out := make([]float32, len(x))
	for h := range kvHeads {
		for r := range rows {
			n := group * dim
			copy(out[(h*rows+r)*n:(h*rows+r+1)*n], x[(r*kvHeads+h)*n:])
		}
	}
	return out
}

func TestHeadsAndTheirGradientMatchTheOracle(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, g := range geometries {
			b.checkHeads(g, true)
			b.checkHeads(g, false)
		}
	})
}

func (b *bench) checkHeads(g kernels.Geometry, normalised bool) {
	const rows, eps, positions = 3, 1e-4, 9
	nq, nk := rows*g.Heads*g.Dim, rows*g.KVHeads*g.Dim
	qkv := b.random(rows * g.QKV())
	cos, sin := b.random(positions*g.Dim/2), b.random(positions*g.Dim/2)
	pos := []int32{8, 0, 3}
	q, k, v := poison(nq), poison(nk), poison(nk)
	a := kernels.HeadsArgs{Geometry: g, Rows: rows, Eps: eps, QKV: b.view(qkv), Positions: b.intView(pos),
		Cos: b.view(cos), Sin: b.view(sin), Q: b.view(q), K: b.view(k), V: b.view(v)}
	var wqq, wkk []float64
	if normalised {
		wq, wk := b.random(g.Dim), b.random(g.Dim)
		a.WQ, a.WK, wqq, wkk = b.view(wq), b.view(wk), wide(wq), wide(wk)
	}
	b.Heads(b.s, a)
	dq, dk, dv := b.random(nq), b.random(nk), b.random(nk)
	gq, gk, gv := byRow(dq, rows, g.KVHeads, g.Group(), g.Dim), byRow(dk, rows, g.KVHeads, 1, g.Dim), byRow(dv, rows, g.KVHeads, 1, g.Dim)
	dqkv, dwq, dwk := poison(rows*g.QKV()), make([]float32, g.Dim), make([]float32, g.Dim)
	ga := kernels.HeadsGradArgs{HeadsArgs: a, DQ: b.view(dq), DK: b.view(dk), DV: b.view(dv), DQKV: b.view(dqkv)}
	if normalised {
		ga.DWQ, ga.DWK = b.view(dwq), b.view(dwk)
	}
	b.HeadsGrad(b.s, ga)
	b.sync()
	x, c, s := wide(qkv), wide(cos), wide(sin)
	all := func() (qs, ks, vs []float64) {
		for r, p := range pos {
			h := g.Dim / 2
			q1, k1, v1 := headsOracle(g, x[r*g.QKV():(r+1)*g.QKV()], wqq, wkk, c[int(p)*h:int(p+1)*h], s[int(p)*h:int(p+1)*h], eps)
			qs, ks, vs = append(qs, q1...), append(ks, k1...), append(vs, v1...)
		}
		return qs, ks, vs
	}
	qs, ks, vs := all()
	b.near("q", byRow(q, rows, g.KVHeads, g.Group(), g.Dim), qs, 1e-6)
	b.near("k", byRow(k, rows, g.KVHeads, 1, g.Dim), ks, 1e-6)
	b.near("v", byRow(v, rows, g.KVHeads, 1, g.Dim), vs, 0)
	loss := func() float64 {
		qs, ks, vs := all()
		return weighted(qs, gq) + weighted(ks, gk) + weighted(vs, gv)
	}
	b.near("dqkv", dqkv, slope(x, loss), 3e-6)
	if normalised {
		b.near("dwq", dwq, slope(wqq, loss), 3e-6)
		b.near("dwk", dwk, slope(wkk, loss), 3e-6)
	}
}

// attentionOracle attends rows start.. of one sequence: q is rows of [heads*dim] (scaled), k and v positions of [kvHeads*dim].
func attentionOracle(g kernels.Geometry, q, k, v []float64, start int) (out, lse []float64) {
	rows := len(q) / (g.Heads * g.Dim)
	for r := range rows {
		for h := range g.Heads {
			query := q[(r*g.Heads+h)*g.Dim:]
			scores := make([]float64, start+r+1)
			for p := range scores {
				for d := range g.Dim {
					scores[p] += query[d] * k[(p*g.KVHeads+h/g.Group())*g.Dim+d]
				}
			}
			logs := logSoftmaxOracle(scores)
			lse = append(lse, scores[0]-logs[0])
			o := make([]float64, g.Dim)
			for p, l := range logs {
				for d := range g.Dim {
					o[d] += math.Exp(l) * v[(p*g.KVHeads+h/g.Group())*g.Dim+d]
				}
			}
			out = append(out, o...)
		}
	}
	return out, lse
}

// attentionGradOracle is the gradient of sum(out*dout) for a sequence from position 0.
func attentionGradOracle(g kernels.Geometry, q, k, v []float64, dout []float32) (dq, dk, dv []float64) {
	dq, dk, dv = make([]float64, len(q)), make([]float64, len(k)), make([]float64, len(v))
	for at := 0; at < len(q); at += g.Dim {
		r, kv := at/(g.Heads*g.Dim), at/g.Dim%g.Heads/g.Group()*g.Dim
		key := func(p int) int { return p*g.KVHeads*g.Dim + kv }
		scores, dp, mean := make([]float64, r+1), make([]float64, r+1), 0.0
		for p := range scores {
			for d := range g.Dim {
				scores[p] += q[at+d] * k[key(p)+d]
				dp[p] += float64(dout[at+d]) * v[key(p)+d]
			}
		}
		logs := logSoftmaxOracle(scores)
		for p, l := range logs {
			mean += math.Exp(l) * dp[p]
		}
		for p, l := range logs {
			ds := math.Exp(l) * (dp[p] - mean)
			for d := range g.Dim {
				dq[at+d] += ds * k[key(p)+d]
				dk[key(p)+d] += ds * q[at+d]
				dv[key(p)+d] += math.Exp(l) * float64(dout[at+d])
			}
		}
	}
	return dq, dk, dv
}

// cached is sequences in scattered cache blocks whose unwritten places are NaN.
type cached struct {
	g      kernels.Geometry
	spans  kernels.Spans
	rows   int
	q      []float32   // [KVHeads, rows*group, dim]
	k, v   [][]float64 // by sequence: [positions, kvHeads*dim]
	kc, vc []float32
	kr, vr []float32 // [KVHeads, rows, dim] of the spans' rows
}

// cache builds sequences of start[i]+n[i] positions of which the last n[i] are the span's rows.
func (b *bench) cache(g kernels.Geometry, start, n []int) *cached {
	c := &cached{g: g, spans: kernels.Spans{Row: []int{0}, Start: start}}
	const blocks = 23
	c.kc, c.vc = poison(blocks*g.BlockFloats()), poison(blocks*g.BlockFloats())
	var kr, vr []float32
	for i := range n {
		total, w := start[i]+n[i], g.KVHeads*g.Dim
		k, v := b.random(total*w), b.random(total*w)
		c.spans.TableAt = append(c.spans.TableAt, len(c.spans.Table))
		for range (total + block - 1) / block {
			c.spans.Table = append(c.spans.Table, int32(len(c.spans.Table)*5%blocks))
		}
		table := kernels.Spans{Row: []int{0, total}, Start: []int{0}, TableAt: []int{0}, Table: c.spans.Table[c.spans.TableAt[i]:]}
		b.StoreKV(b.s, kernels.KVArgs{Geometry: g, Spans: table, Rows: total, K: b.view(byHead(k, total, g.KVHeads, 1, g.Dim)),
			V: b.view(byHead(v, total, g.KVHeads, 1, g.Dim)), KCache: b.view(c.kc), VCache: b.view(c.vc)})
		c.k, c.v = append(c.k, wide(k)), append(c.v, wide(v))
		kr, vr = append(kr, k[start[i]*w:]...), append(vr, v[start[i]*w:]...)
		c.rows += n[i]
		c.spans.Row = append(c.spans.Row, c.rows)
	}
	c.q = b.random(c.rows * g.Heads * g.Dim)
	for i := range c.q {
		c.q[i] *= queryScale(g.Dim)
	}
	c.kr, c.vr = byHead(kr, c.rows, g.KVHeads, 1, g.Dim), byHead(vr, c.rows, g.KVHeads, 1, g.Dim)
	return c
}

func (b *bench) attention(c *cached) (out, lse []float32, a kernels.AttentionArgs) {
	out, lse = poison(c.rows*c.g.Heads*c.g.Dim), poison(c.rows*c.g.Heads)
	a = kernels.AttentionArgs{Geometry: c.g, Spans: c.spans, Rows: c.rows, Q: b.view(c.q), KCache: b.view(c.kc), VCache: b.view(c.vc),
		Out: b.view(out), LSE: b.view(lse)}
	b.Attention(b.s, a)
	b.sync()
	return out, lse, a
}

func TestAttentionMatchesTheOracleAndSeesNothingBeyondItsPositions(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, g := range geometries {
			c := b.cache(g, []int{0, 63, 64, 127, 200, 0}, []int{1, 1, 1, 40, 3, 130})
			out, lse, _ := b.attention(c)
			q := wide(byRow(c.q, c.rows, g.KVHeads, g.Group(), g.Dim))
			rowLSE := byRow(lse, c.rows, g.KVHeads, g.Group(), 1)
			for i := range c.spans.Start {
				from, to, w := c.spans.Row[i], c.spans.Row[i+1], g.Heads*g.Dim
				want, wantLSE := attentionOracle(g, q[from*w:to*w], c.k[i], c.v[i], c.spans.Start[i])
				b.near("out", out[from*w:to*w], want, 2e-6)
				b.near("lse", rowLSE[from*g.Heads:to*g.Heads], wantLSE, 1e-6)
			}
		}
	})
}

func TestAttentionGradientMatchesTheOracle(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, g := range geometries {
			c := b.cache(g, []int{0, 0, 0}, []int{3, 150, 1})
			_, _, a := b.attention(c)
			nq, nk := len(c.q), len(c.kr)
			dout, dq, dk, dv := b.random(nq), poison(nq), poison(nk), poison(nk)
			b.AttentionGrad(b.s, kernels.AttentionGradArgs{AttentionArgs: a, K: b.view(c.kr), V: b.view(c.vr), DOut: b.view(dout),
				DQ: b.view(dq), DK: b.view(dk), DV: b.view(dv)})
			b.sync()
			q := wide(byRow(c.q, c.rows, g.KVHeads, g.Group(), g.Dim))
			var wantQ, wantK, wantV []float64
			for i := range c.spans.Start {
				w := g.Heads * g.Dim
				from, to := c.spans.Row[i]*w, c.spans.Row[i+1]*w
				gq, gk, gv := attentionGradOracle(g, q[from:to], c.k[i], c.v[i], dout[from:to])
				wantQ, wantK, wantV = append(wantQ, gq...), append(wantK, gk...), append(wantV, gv...)
			}
			b.near("dq", byRow(dq, c.rows, g.KVHeads, g.Group(), g.Dim), wantQ, 5e-6)
			b.near("dk", byRow(dk, c.rows, g.KVHeads, 1, g.Dim), wantK, 5e-6)
			b.near("dv", byRow(dv, c.rows, g.KVHeads, 1, g.Dim), wantV, 5e-6)
		}
	})
}

func TestARowOfAttentionHasTheSameBitsInAnyCompany(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, g := range geometries {
			b.rowsInAnyCompany(g)
		}
	})
}

func (b *bench) rowsInAnyCompany(g kernels.Geometry) {
	c := b.cache(g, []int{0, 10}, []int{150, 3})
	whole, _, _ := b.attention(c)
	q := byRow(c.q, c.rows, g.KVHeads, g.Group(), g.Dim)
	w := g.Heads * g.Dim
	for _, cut := range [][2]int{{0, 1}, {47, 49}, {60, 67}, {63, 64}, {64, 65}, {100, 150}} {
		part := *c
		n := cut[1] - cut[0]
		part.rows, part.q = n, byHead(slices.Clone(q[cut[0]*w:cut[1]*w]), n, g.KVHeads, g.Group(), g.Dim)
		part.spans = kernels.Spans{Row: []int{0, n}, Start: []int{cut[0]}, TableAt: []int{0}, Table: c.spans.Table}
		out, _, _ := b.attention(&part)
		if !sameBits(out, whole[cut[0]*w:cut[1]*w]) {
			b.t.Errorf("rows %v alone differ from those of a whole prefill", cut)
		}
	}
	b.rowsTogether(c, whole, q)
}

// rowsTogether decodes some rows of the first sequence at once: they share its blocks as the samples of a prompt do.
func (b *bench) rowsTogether(c *cached, whole, q []float32) {
	g, w := c.g, c.g.Heads*c.g.Dim
	for _, at := range [][]int{{149, 128, 129, 140}, {63, 64, 65, 127, 128, 3}, {130, 5, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 144, 145}} {
		part := cached{g: g, rows: len(at), kc: c.kc, vc: c.vc, spans: kernels.Spans{Row: []int{0}, Start: at}}
		var rows []float32
		for i, p := range at {
			rows = append(rows, q[p*w:(p+1)*w]...)
			part.spans.Row, part.spans.TableAt = append(part.spans.Row, i+1), append(part.spans.TableAt, len(part.spans.Table))
			part.spans.Table = append(part.spans.Table, c.spans.Table[:p/block+1]...)
		}
		part.q = byHead(rows, len(at), g.KVHeads, g.Group(), g.Dim)
		out, _, _ := b.attention(&part)
		for i, p := range at {
			if !sameBits(out[i*w:(i+1)*w], whole[p*w:(p+1)*w]) {
				b.t.Errorf("%+v: position %d decoded with %v differs from a whole prefill", g, p, at)
			}
		}
	}
}

func TestSpansThatDoNotFitAreRefused(t *testing.T) {
	b, _ := New("")
	g := geometries[0]
	for name, spans := range map[string]kernels.Spans{
		"rows":  {Row: []int{0, 2}, Start: []int{0}, TableAt: []int{0}, Table: []int32{0}},
		"table": {Row: []int{0, 1}, Start: []int{64}, TableAt: []int{0}, Table: []int32{0}},
		"block": {Row: []int{0, 1}, Start: []int{0}, TableAt: []int{0}, Table: []int32{7}},
	} {
		s := b.NewStream(kernels.StreamOptions{})
		kv, _ := b.Floats(g.KVHeads * g.Dim)
		cache, _ := b.Floats(g.BlockFloats())
		b.StoreKV(s, kernels.KVArgs{Geometry: g, Spans: spans, Rows: 1, K: kv, V: kv, KCache: cache, VCache: cache})
		if s.Sync(t.Context()) == nil {
			t.Errorf("spans with wrong %s were accepted", name)
		}
	}
}

// TestACacheOfBfloat16IsOneOfRoundedFloats: on every path, in every company, and the rows that a trainer goes on with are the cache's.
func TestACacheOfBfloat16IsOneOfRoundedFloats(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, g := range geometries {
			const total = 150
			n := total * g.KVHeads * g.Dim
			k, v, q := b.random(n), b.random(n), b.random(total*g.Heads*g.Dim)
			spans := kernels.Spans{Row: []int{0, total}, Start: []int{0}, TableAt: []int{0}, Table: []int32{2, 0, 3}}
			kh, _ := b.Halves(4 * g.BlockFloats())
			vh, _ := b.Halves(4 * g.BlockFloats())
			b.StoreKV(b.s, kernels.KVArgs{Geometry: g, Spans: spans, Rows: total, K: b.view(k), V: b.view(v), KCache: kh, VCache: vh})
			b.sync()
			for i, x := range append(slices.Clone(k), v...) {
				if x != widenBF16(roundBF16(x)) || x == 0 {
					b.t.Fatalf("%+v: row element %d is %v after it was stored in bfloat16", g, i, x)
				}
			}
			kf, vf := b.view(poison(4*g.BlockFloats())), b.view(poison(4*g.BlockFloats()))
			b.StoreKV(b.s, kernels.KVArgs{Geometry: g, Spans: spans, Rows: total, K: b.view(k), V: b.view(v), KCache: kf, VCache: vf})
			out := func(kc, vc kernels.View, from, to int) []float32 {
				w, rows := g.Heads*g.Dim, to-from
				x := poison(rows * w)
				part := byHead(slices.Clone(q[from*w:to*w]), rows, g.KVHeads, g.Group(), g.Dim)
				s := kernels.Spans{Row: []int{0, rows}, Start: []int{from}, TableAt: []int{0}, Table: spans.Table}
				b.Attention(b.s, kernels.AttentionArgs{Geometry: g, Spans: s, Rows: rows, Q: b.view(part), KCache: kc, VCache: vc, Out: b.view(x)})
				b.sync()
				return x
			}
			whole := out(kf, vf, 0, total)
			for _, cut := range [][2]int{{0, total}, {0, 1}, {63, 64}, {64, 65}, {100, 103}, {149, 150}, {20, 90}} {
				if !sameBits(out(kh, vh, cut[0], cut[1]), whole[cut[0]*g.Heads*g.Dim:cut[1]*g.Heads*g.Dim]) {
					b.t.Errorf("%+v: rows %v over bfloat16 differ from those over rounded floats", g, cut)
				}
			}
		}
	})
}
