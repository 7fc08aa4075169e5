package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

// widths are row lengths around the 16-element groups.
var widths = []int{1, 7, 16, 33, 128}

func TestExponentialIsAccurateAndFlushesToZero(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		x := make([]float32, 0, 1<<12)
		for v := float32(-87.3); v < 0; v += 0.0213 {
			x = append(x, v)
		}
		x = append(x, 0, float32(math.Inf(-1)), -88, -1e30)
		got := slices.Clone(x)
		for i := range got {
			got[i] = x[i]
		}
		b.probsGrad(got, 0, -1)
		for i, v := range x {
			want := math.Exp(float64(v))
			if v < -87.4 {
				want = 0
			}
			if math.Abs(float64(got[i])-want) > 2.5e-7*want {
				b.t.Fatalf("exp(%g) is %g, want %g", v, got[i], want)
			}
		}
		if one := got[len(x)-4]; one != 1 {
			b.t.Errorf("exp(0) is %g, want exactly 1", one)
		}
	})
}

func rmsNorm(x, w []float64, eps float64) []float64 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	r := 1 / math.Sqrt(square/float64(len(x))+eps)
	y := make([]float64, len(x))
	for i := range x {
		y[i] = x[i] * r * w[i]
	}
	return y
}

func TestRMSNormAndItsGradientsMatchTheOracle(t *testing.T) {
	const rows, eps = 5, 1e-3
	onEveryPath(t, func(b *bench) {
		for _, n := range widths {
			x, w, dy := b.random(rows*n), b.random(n), b.random(rows*n)
			y, rstd := poison(rows*n), poison(rows)
			dx0, dw0 := b.random(rows*n), b.random(n)
			dx, dw := slices.Clone(dx0), slices.Clone(dw0)
			b.RMSNorm(b.s, b.view(y), b.view(rstd), b.view(x), b.view(w), rows, n, eps)
			b.RMSNormWeightGrad(b.s, b.view(dw), b.view(dy), b.view(x), b.view(rstd), rows, n)
			b.RMSNormGrad(b.s, b.view(dx), b.view(dy), b.view(x), b.view(w), b.view(rstd), rows, n)
			xx, ww := wide(x), wide(w)
			all := func() []float64 {
				var out []float64
				for r := range rows {
					out = append(out, rmsNorm(xx[r*n:(r+1)*n], ww, eps)...)
				}
				return out
			}
			b.near("y", y, all(), 1e-6)
			loss := func() float64 { return weighted(all(), dy) }
			b.near("dx", dx, sum(slope(xx, loss), dx0), 2e-6)
			b.near("dw", dw, sum(slope(ww, loss), dw0), 2e-6)
		}
	})
}

func sum(g []float64, old []float32) []float64 {
	for i, v := range old {
		g[i] += float64(v)
	}
	return g
}

func TestSwiGLUAndItsGradientMatchTheOracle(t *testing.T) {
	const rows = 3
	onEveryPath(t, func(b *bench) {
		for _, n := range widths {
			gu, dy := b.random(2*rows*n), b.random(rows*n)
			gu[0] = -95 // e^95 overflows float32
			y, d := poison(rows*n), poison(2*rows*n)
			b.SwiGLU(b.s, b.view(y), b.view(gu), rows, n)
			b.SwiGLUGrad(b.s, b.view(d), b.view(dy), b.view(gu), rows, n)
			x := wide(gu)
			all := func() []float64 {
				out := make([]float64, rows*n)
				for r := range rows {
					for i := range n {
						g := x[2*r*n+i]
						out[r*n+i] = g / (1 + math.Exp(-g)) * x[(2*r+1)*n+i]
					}
				}
				return out
			}
			b.near("y", y, all(), 1e-6)
			b.near("dGateUp", d, slope(x, func() float64 { return weighted(all(), dy) }), 2e-6)
		}
	})
}

func TestEmbeddingGathersAndItsGradientScattersInOrder(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		const vocab, dim = 5, 19
		table, ids := b.random(vocab*dim), []int32{3, 0, 3, 4, 3}
		out, dout, d := poison(len(ids)*dim), b.random(len(ids)*dim), b.random(vocab*dim)
		want := slices.Clone(d)
		b.Embedding(b.s, b.view(out), b.view(table), b.intView(ids), len(ids), dim)
		b.EmbeddingGrad(b.s, b.view(d), b.view(dout), b.intView(ids), len(ids), dim)
		for r, id := range ids {
			if !sameBits(out[r*dim:(r+1)*dim], table[int(id)*dim:int(id+1)*dim]) {
				b.t.Errorf("row %d is not row %d of the table", r, id)
			}
			for c := range dim {
				want[int(id)*dim+c] += dout[r*dim+c]
			}
		}
		if !sameBits(d, want) {
			b.t.Error("gradient is not the sum over rows ascending")
		}
	})
}

func TestAdamWMatchesTheOracle(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		const n = 37
		w, m, v := b.random(n), make([]float32, n), make([]float32, n)
		ww, mm, vv := wide(w), make([]float64, n), make([]float64, n)
		for step := int64(1); step <= 5; step++ {
			g := b.random(n)
			c := kernels.AdamWStep{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Step: step, Scale: 0.3}
			b.AdamW(b.s, b.view(w), b.view(m), b.view(v), b.view(g), n, c)
			for i := range ww {
				x := float64(g[i]) * c.Scale
				mm[i] = c.Beta1*mm[i] + (1-c.Beta1)*x
				vv[i] = c.Beta2*vv[i] + (1-c.Beta2)*x*x
				mh, vh := mm[i]/(1-math.Pow(c.Beta1, float64(step))), vv[i]/(1-math.Pow(c.Beta2, float64(step)))
				ww[i] -= c.LR * (mh/(math.Sqrt(vh)+c.Eps) + c.WeightDecay*ww[i])
			}
		}
		b.near("w", w, ww, 1e-6)
		b.near("m", m, mm, 1e-6)
		b.near("v", v, vv, 1e-6)
	})
}

func TestSumSquaresMatchesTheOracle(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		xs := [][]float32{b.random(1003), b.random(5), b.random(64), nil}
		var views []kernels.View
		for _, x := range xs {
			views = append(views, b.view(x))
		}
		got := make([]float64, len(xs))
		b.SumSquares(b.s, got, views)
		b.sync()
		for i, x := range xs {
			want := 0.0
			for _, v := range x {
				want += float64(v) * float64(v)
			}
			if math.Abs(got[i]-want) > 1e-12*want || got[i] != laneSquares(x) {
				b.t.Errorf("sum of squares is %v, want %v", got[i], want)
			}
		}
	})
}

// laneSquares is the sum in the contract's order.
func laneSquares(x []float32) float64 {
	var acc [16]float64
	for i, v := range x {
		acc[i%16] += float64(v) * float64(v)
	}
	for w := 8; w > 0; w /= 2 {
		for i := range w {
			acc[i] += acc[i+w]
		}
	}
	return acc[0]
}

func TestAddAddsEachElement(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		dst, src := b.random(50_003), b.random(50_003)
		want := make([]float32, len(dst))
		for i := range want {
			want[i] = dst[i] + src[i]
		}
		b.Add(b.s, b.view(dst), b.view(src))
		if !sameBits(dst, want) {
			b.t.Error("not the sums of the elements")
		}
	})
}

func TestRotationHasTheBitsOfThePortableOne(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, half := range []int{1, 5, 8, 16, 32, 36} {
			for _, sign := range []float32{1, -1} {
				x, cos, sin := b.random(2*half), b.random(half), b.random(half)
				got, want := poison(2*half), poison(2*half)
				b.rotate(got, x, cos, sin, sign, 0.3)
				rotate(want, x, cos, sin, sign, 0.3)
				if !sameBits(got, want) {
					b.t.Errorf("half a head of %d, sign %v: other bits", half, sign)
				}
			}
		}
	})
}
