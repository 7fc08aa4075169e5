package cpu

import (
	"fmt"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

// operands is the right operand of a product in one precision, and its left one in the type that belongs to it.
type operands struct {
	name      string
	a, packed kernels.DType
}

var everyKind = []operands{{"float32", kernels.F32, kernels.F32}, {"bfloat16", kernels.BF16, kernels.BF16}, {"widened", kernels.F32, kernels.BF16}}

// left gives row r of n floats in the type of an operand.
func (b *bench) left(t kernels.DType, x []float32, rows, k int) kernels.View {
	if t == kernels.F32 {
		return b.view(x)
	}
	v, _ := b.Halves(b.RoundedLen(rows, k))
	b.RoundRows(b.s, v, b.view(x), rows, k)
	return v
}

func (b *bench) right(t kernels.DType, w []float32, n, k int) kernels.View {
	v, _ := b.Floats(b.PackedLen(t, n, k))
	if t == kernels.BF16 {
		v, _ = b.Halves(b.PackedLen(t, n, k))
	}
	b.Pack(b.s, v, b.view(w), n, k)
	return v
}

// TestARowAloneHasTheBitsItHasInAProductOfManyRows: decoding one sequence is another kernel than decoding several.
func TestARowAloneHasTheBitsItHasInAProductOfManyRows(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, o := range everyKind {
			for _, z := range []kernels.Shape{{M: 3, N: 1, K: 1}, {M: 3, N: 32, K: 2}, {M: 3, N: 97, K: 7}, {M: 2, N: 160, K: 64}, {M: 3, N: 225, K: 531},
				{M: 13, N: 64, K: 1030}, {M: 2, N: 4100, K: 48}} {
				for _, accumulate := range []bool{false, true} {
					b.rowsAlone(o, z, accumulate)
				}
			}
		}
	})
}

func (b *bench) rowsAlone(o operands, z kernels.Shape, accumulate bool) {
	b.t.Helper()
	a, w, old := b.random(z.M*z.K), b.random(z.N*z.K), b.random(z.M*z.N)
	packed := b.right(o.packed, w, z.N, z.K)
	all := append([]float32(nil), old...)
	b.GemmNT(b.s, b.view(all), b.left(o.a, a, z.M, z.K), packed, z, accumulate)
	for _, threads := range []int{1, 2} {
		s := b.NewStream(kernels.StreamOptions{Parallelism: threads})
		for r := range z.M {
			one := append([]float32(nil), old[r*z.N:(r+1)*z.N]...)
			b.GemmNT(s, b.view(one), b.left(o.a, a[r*z.K:(r+1)*z.K], 1, z.K), packed, kernels.Shape{M: 1, N: z.N, K: z.K}, accumulate)
			if !sameBits(one, all[r*z.N:(r+1)*z.N]) {
				b.t.Errorf("%s %+v accumulate=%v: row %d alone on %d threads differs from the product of all", o.name, z, accumulate, r, threads)
				return
			}
		}
	}
	b.sync()
}

// BenchmarkGemv reads packed weights of the size of a layer of 135M parameters, which leave every cache.
func BenchmarkGemv(b *testing.B) {
	bk, err := FromEnv()
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range everyKind {
		for _, z := range []kernels.Shape{{M: 1, N: 49152, K: 576}, {M: 1, N: 3072, K: 576}, {M: 1, N: 576, K: 1536}} {
			b.Run(fmt.Sprintf("%s/%dx%d", o.name, z.N, z.K), func(b *testing.B) { gemvRate(b, bk, o, z) })
		}
	}
}

func gemvRate(b *testing.B, bk *Backend, o operands, z kernels.Shape) {
	x := &bench{Backend: bk, s: bk.NewStream(kernels.StreamOptions{})}
	a := x.left(o.a, make([]float32, z.K), 1, z.K)
	var packed []kernels.View
	bytes, size := 0, 4
	if o.packed == kernels.BF16 {
		size = 2
	}
	for bytes < 256<<20 {
		packed = append(packed, x.right(o.packed, make([]float32, z.N*z.K), z.N, z.K))
		bytes += size * packed[0].Len
	}
	c, _ := bk.Floats(z.N)
	b.SetBytes(int64(bytes))
	for b.Loop() {
		for _, w := range packed {
			bk.GemmNT(x.s, c, a, w, z, false)
		}
	}
}
