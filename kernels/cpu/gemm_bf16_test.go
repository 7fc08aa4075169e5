package cpu

import (
	"math"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

// pairChain is a product of rounded operands as the contract defines it: pairs ascending, the odd element's product added first.
func pairChain(b *bench, z kernels.Shape, a, w func(i, p int) float32, old []float32) []float32 {
	step := fused
	if b.isa == generic {
		step = fma
	}
	at := func(f func(i, p int) float32, i, p int) float32 {
		if p >= z.K {
			return 0
		}
		return widenBF16(roundBF16(f(i, p)))
	}
	c := make([]float32, z.M*z.N)
	for i := range z.M {
		for j := range z.N {
			v := old[i*z.N+j]
			for p := 0; p < z.K; p += 2 {
				v = step(at(a, i, p+1), at(w, j, p+1), v)
				v = step(at(a, i, p), at(w, j, p), v)
			}
			c[i*z.N+j] = v
		}
	}
	return c
}

// rounded returns x[rows,cols] as rounded rows, over poison.
func (b *bench) rounded(x []float32, rows, cols int) kernels.View {
	v, _ := b.Halves(b.RoundedLen(rows, cols))
	for i := range v.Mem.(*memory).halves {
		v.Mem.(*memory).halves[i] = 0x7fff
	}
	b.RoundRows(b.s, v, b.view(x), rows, cols)
	return v
}

func TestEveryElementOfARoundedProductIsOneAscendingChainOfPairs(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, z := range shapes {
			for _, accumulate := range []bool{false, true} {
				a, w, old := b.random(z.M*z.K), b.random(z.N*z.K), b.random(z.M*z.N)
				start := old
				if !accumulate {
					start = make([]float32, len(old))
				}
				for _, c := range []struct {
					name string
					pack func(kernels.Stream, kernels.View, kernels.View, int, int)
					gemm func(kernels.Stream, kernels.View, kernels.View, kernels.View, kernels.Shape, bool)
					w    func(j, p int) float32
				}{
					{"NT", b.Pack, b.GemmNT, func(j, p int) float32 { return w[j*z.K+p] }},
					{"NN", b.PackNN, b.GemmNN, func(j, p int) float32 { return w[p*z.N+j] }},
				} {
					packed, _ := b.Halves(b.PackedLen(kernels.BF16, z.N, z.K))
					for i := range packed.Mem.(*memory).halves {
						packed.Mem.(*memory).halves[i] = 0x7fff
					}
					c.pack(b.s, packed, b.view(w), z.N, z.K)
					left := func(i, p int) float32 { return a[i*z.K+p] }
					got := append([]float32(nil), old...)
					c.gemm(b.s, b.view(got), b.rounded(a, z.M, z.K), packed, z, accumulate)
					b.sync()
					if !sameBits(got, pairChain(b, z, left, c.w, start)) {
						b.t.Errorf("%s of %+v, accumulate %v: not the chain's bits", c.name, z, accumulate)
					}
					got = append([]float32(nil), old...)
					c.gemm(b.s, b.view(got), b.view(a), packed, z, accumulate)
					b.sync()
					round := func(j, p int) float32 { return widenBF16(roundBF16(c.w(j, p))) }
					if !sameBits(got, chain(b, z, left, round, old, accumulate)) {
						b.t.Errorf("%s of %+v, accumulate %v: float32 by rounded weights is not the chain of the widened weights", c.name, z, accumulate)
					}
				}
			}
		}
	})
}

func TestARoundedGradientOfWeightsIsAChainOfPairsWithinEachSequence(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, z := range []kernels.Shape{{M: 5, N: 3, K: 7}, {M: 48, N: 32, K: 64}, {M: 61, N: 70, K: 133}, {M: 100, N: 33, K: 1300}, {M: 16, N: 16, K: 1}} {
			a, w, old := b.random(z.M*z.K), b.random(z.N*z.K), b.random(z.M*z.N)
			rows := []int{0}
			for at, n := 0, 1; at < z.K; n = n*3 + 1 {
				at = min(z.K, at+n)
				rows = append(rows, at)
			}
			got, want := append([]float32(nil), old...), old
			x, y := b.rounded(a, z.K, z.M), b.rounded(w, z.K, z.N)
			b.GemmTNRounded(b.s, b.view(got), x, y, z, rows, true)
			pieces := append([]float32(nil), old...)
			for i := range len(rows) - 1 {
				from, k := rows[i], rows[i+1]-rows[i]
				one := kernels.Shape{M: z.M, N: z.N, K: k}
				want = pairChain(b, one, func(i, p int) float32 { return a[(from+p)*z.M+i] }, func(j, p int) float32 { return w[(from+p)*z.N+j] }, want)
				b.GemmTNRounded(b.s, b.view(pieces), x.Slice(from*even(z.M), (from+k)*even(z.M)), y.Slice(from*even(z.N), (from+k)*even(z.N)), one, []int{0, k}, true)
			}
			b.sync()
			if !sameBits(got, want) {
				b.t.Errorf("%+v in sequences at %v: not the chain's bits", z, rows)
			}
			fresh := poison(z.M * z.N)
			b.GemmTNRounded(b.s, b.view(fresh), x, y, z, rows, false)
			from := make([]float32, z.M*z.N)
			b.GemmTNRounded(b.s, b.view(from), x, y, z, rows, true)
			b.sync()
			if !sameBits(fresh, from) {
				b.t.Errorf("%+v: a product that does not accumulate differs from one on top of zeros", z)
			}
			if !sameBits(pieces, want) {
				b.t.Errorf("%+v sequence by sequence: not the bits of one product", z)
			}
		}
	})
}

func TestRoundingIsToNearestWithTiesToEven(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		var x []float32
		for _, upper := range []uint32{0, 0x0001, 0x3f80, 0x3f81, 0x7f7f, 0xbf80, 0xff7f, 0x7f80, 0x7fc0, 0x7f81, 0xff80} {
			for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
				x = append(x, math.Float32frombits(upper<<16|lower))
			}
		}
		got := b.rounded(x, 1, len(x)).Mem.(*memory).halves
		for i, v := range x {
			r := widenBF16(got[i])
			if v != v {
				if r == r {
					b.t.Errorf("NaN %#x became %v", math.Float32bits(v), r)
				}
				continue
			}
			// the neighbours, and the one of them that is nearer, or even
			below := math.Float32frombits(math.Float32bits(v) &^ 0xffff)
			above := math.Float32frombits(math.Float32bits(below) + 0x10000)
			want := below
			lo, hi := math.Abs(float64(v)-float64(below)), math.Abs(distanceUp(above, below)-math.Abs(float64(v)-float64(below)))
			if lo > hi || lo == hi && math.Float32bits(below)>>16&1 == 1 {
				want = above
			}
			if math.IsInf(float64(v), 0) {
				want = v
			}
			if r != want {
				b.t.Errorf("%v (%#x) became %v, want %v", v, math.Float32bits(v), r, want)
			}
		}
	})
}

// distanceUp is the distance of neighbours; that of the largest number to infinity is as if the exponents went on.
func distanceUp(above, below float32) float64 {
	if math.IsInf(float64(above), 0) {
		return math.Ldexp(1, 120)
	}
	return math.Abs(float64(above) - float64(below))
}
