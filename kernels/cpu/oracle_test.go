package cpu

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

// The oracles of this package's tests are plain loops in float64, and gradients are central differences of those loops.

// bench is one path under test with a stream and a source of numbers.
type bench struct {
	*Backend
	t *testing.T
	s kernels.Stream
	r *rand.Rand
}

func onEveryPath(t *testing.T, f func(b *bench)) {
	for _, name := range Paths() {
		t.Run(name, func(t *testing.T) {
			b, err := New(name)
			if err != nil {
				t.Fatal(err)
			}
			x := &bench{b, t, b.NewStream(kernels.StreamOptions{}), rand.New(rand.NewPCG(1, 2))}
			f(x)
			x.sync()
		})
	}
}

func (b *bench) sync() {
	b.t.Helper()
	if err := b.s.Sync(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) view(x []float32) kernels.View {
	v, _ := b.Wrap(x)
	return v
}

func (b *bench) intView(x []int32) kernels.View {
	v, _ := b.Ints(len(x))
	b.UploadInts(b.s, v, x)
	return v
}

// random returns n numbers of unit variance.
func (b *bench) random(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(b.r.NormFloat64())
	}
	return x
}

// poison returns n floats that an operation must overwrite.
func poison(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return x
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// near fails unless got is within tolerance of want, relative to want's largest element. A NaN is never near.
func (b *bench) near(what string, got []float32, want []float64, tolerance float64) {
	b.t.Helper()
	if len(got) != len(want) {
		b.t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	top := 1e-30
	for _, v := range want {
		top = max(top, math.Abs(v))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tolerance*top) {
			b.t.Errorf("%s[%d] is %g, want %g (largest %g)", what, i, got[i], want[i], top)
			return
		}
	}
}

// slope is the central difference of f at every element of x.
func slope(x []float64, f func() float64) []float64 {
	const h = 1e-5
	g := make([]float64, len(x))
	for i, v := range x {
		x[i] = v + h
		up := f()
		x[i] = v - h
		g[i] = (up - f()) / (2 * h)
		x[i] = v
	}
	return g
}

func weighted(y []float64, w []float32) float64 {
	sum := 0.0
	for i, v := range y {
		sum += v * float64(w[i])
	}
	return sum
}

// fused is a*b+c rounded once: the exact sum is rounded to odd in float64 before it is rounded to float32.
func fused(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	v := s - p
	rest := (p - (s - v)) + (q - v)
	if bits := math.Float64bits(s); rest != 0 && bits&1 == 0 {
		if (rest > 0) == (s > 0) {
			s = math.Float64frombits(bits + 1)
		} else {
			s = math.Float64frombits(bits - 1)
		}
	}
	return float32(s)
}
