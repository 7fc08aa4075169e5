package cpu

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

var shapes = []kernels.Shape{
	{M: 1, N: 1, K: 1}, {M: 2, N: 33, K: 5}, {M: 13, N: 16, K: 7}, {M: 12, N: 32, K: 64}, {M: 25, N: 47, K: 31}, {M: 97, N: 100, K: 530}, {M: 50, N: 129, K: 300},
	{M: 3, N: 20, K: 1100}, {M: 23, N: 63, K: 3}, {M: 11, N: 8, K: 9}, {M: 5, N: 0, K: 3}, {M: 4, N: 5, K: 0}, {M: 0, N: 5, K: 3}, {M: 96, N: 64, K: 70}, {M: 48, N: 70, K: 65},
	{M: 1, N: 32, K: 9},
}

// chain is the product as the contract defines it, with the path's own multiply-add.
func chain(b *bench, z kernels.Shape, a, w func(i, p int) float32, old []float32, accumulate bool) []float32 {
	step := fused
	if b.isa == generic {
		step = fma
	}
	c := make([]float32, z.M*z.N)
	for i := range z.M {
		for j := range z.N {
			v := float32(0)
			if accumulate {
				v = old[i*z.N+j]
			}
			for p := range z.K {
				v = step(a(i, p), w(j, p), v)
			}
			c[i*z.N+j] = v
		}
	}
	return c
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestEveryElementOfAProductIsOneAscendingChainOfFusedMultiplyAdds(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, z := range shapes {
			for _, accumulate := range []bool{false, true} {
				a, w, old := b.random(z.M*z.K), b.random(z.N*z.K), b.random(z.M*z.N)
				packed := poison(b.PackedLen(kernels.F32, z.N, z.K))
				b.Pack(b.s, b.view(packed), b.view(w), z.N, z.K)
				for _, c := range []struct {
					name string
					run  func(c kernels.View)
					a, w func(i, p int) float32
				}{
					{"NT", func(c kernels.View) { b.GemmNT(b.s, c, b.view(a), b.view(packed), z, accumulate) },
						func(i, p int) float32 { return a[i*z.K+p] }, func(j, p int) float32 { return w[j*z.K+p] }},
					{"NN", func(c kernels.View) { b.GemmNN(b.s, c, b.view(a), b.view(w), z, accumulate) },
						func(i, p int) float32 { return a[i*z.K+p] }, func(j, p int) float32 { return w[p*z.N+j] }},
					{"TN", func(c kernels.View) { b.GemmTN(b.s, c, b.view(a), b.view(w), z, accumulate) },
						func(i, p int) float32 { return a[p*z.M+i] }, func(j, p int) float32 { return w[p*z.N+j] }},
				} {
					got := slices.Clone(old)
					c.run(b.view(got))
					b.sync()
					if !sameBits(got, chain(b, z, c.a, c.w, old, accumulate)) {
						b.t.Errorf("%s of %+v, accumulate %v: not the chain's bits", c.name, z, accumulate)
					}
				}
			}
		}
	})
}

func TestAProductCutAnywhereHasTheBitsOfTheWhole(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		z := kernels.Shape{M: 40, N: 70, K: 333}
		a, w := b.random(z.K*z.M), b.random(z.K*z.N)
		whole, cut := make([]float32, z.M*z.N), make([]float32, z.M*z.N)
		b.GemmTN(b.s, b.view(whole), b.view(a), b.view(w), z, false)
		for k := 0; k < z.K; {
			n := min(1+k, z.K-k)
			b.GemmTN(b.s, b.view(cut), b.view(a[k*z.M:(k+n)*z.M]), b.view(w[k*z.N:(k+n)*z.N]), kernels.Shape{M: z.M, N: z.N, K: n}, true)
			k += n
		}
		if !sameBits(whole, cut) {
			b.t.Error("cut over tokens differs from the whole")
		}
	})
}

func TestThreadsChangeNoBitOfAProduct(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		z := kernels.Shape{M: 130, N: 150, K: 140}
		a, w := b.view(b.random(z.M*z.K)), b.view(b.random(z.K*z.N))
		run := func(procs int) []float32 {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			c := make([]float32, z.M*z.N)
			b.GemmNN(b.s, b.view(c), a, w, z, false)
			return c
		}
		if one := run(1); !sameBits(one, run(2)) || !sameBits(one, run(7)) {
			b.t.Error("bits depend on GOMAXPROCS")
		}
	})
}

func TestAViewOfTheWrongLengthBreaksTheStreamWithItsName(t *testing.T) {
	b, _ := New("")
	s := b.NewStream(kernels.StreamOptions{})
	c, _ := b.Floats(5)
	a, _ := b.Floats(6)
	b.GemmNN(s, c, a, a, kernels.Shape{M: 2, N: 2, K: 3}, false)
	b.RMSNorm(s, a, a, a, a, 1, 1, 1) // refused too, but the first error stays
	want := "kernels/cpu: GemmNN: c holds 5 floats, want 4"
	if err := s.Sync(t.Context()); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestTheEnvironmentForcesAPath(t *testing.T) {
	for _, name := range Paths() {
		t.Setenv(EnvISA, name)
		b, err := FromEnv()
		if err != nil {
			t.Fatal(err)
		}
		if id := b.NumericsID(kernels.PrecisionBF16); !strings.HasPrefix(id, "cpu-"+name+"-bf16-") {
			t.Errorf("%s=%s computes as %s", EnvISA, name, id)
		}
	}
	t.Setenv(EnvISA, "sse9")
	if _, err := FromEnv(); err == nil || !strings.Contains(err.Error(), EnvISA) || !strings.Contains(err.Error(), Paths()[0]) {
		t.Errorf("error %v, want one that names %s and the paths that there are", err, EnvISA)
	}
}
