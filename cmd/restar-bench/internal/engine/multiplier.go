package engine

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/kernels"
)

// How long an operation is repeated for the best of its runs, and how often at least.
const (
	repeatFor   = 150 * time.Millisecond
	repeatLeast = 4
)

// best is the shortest of several runs.
func best(f func()) float64 {
	least, begin := time.Hour, time.Now()
	for i := 0; i < repeatLeast || time.Since(begin) < repeatFor; i++ {
		start := time.Now()
		f()
		least = min(least, time.Since(start))
	}
	return least.Seconds()
}

// newProducts answers requests "KIND PRECISION M N K THREADS" with the best time of a product. KIND PACK is NT from
// float32 operands: packing, and rounding in bf16, are counted.
func newProducts(Shape) (turn, error) {
	b, err := backend()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, request string) (match.Answer, error) {
		var kind, precision string
		var z kernels.Shape
		n := 0
		if _, err := fmt.Sscan(request, &kind, &precision, &z.M, &z.N, &z.K, &n); err != nil {
			return match.Answer{}, fmt.Errorf("%w: request %q: %w", match.ErrInput, request, err)
		}
		runtime.GOMAXPROCS(n)
		x := newBench(b, n)
		var run func()
		if precision == bf16 {
			run = x.rounded(kind, z)
		} else {
			run = x.exact(kind, z)
		}
		seconds := best(run)
		if err := x.stream.Sync(ctx); err != nil {
			return match.Answer{}, fmt.Errorf("%s: %w", request, err)
		}
		return match.Answer{Seconds: seconds}, x.err
	}, nil
}

// bench makes operands. Its first error stays.
type bench struct {
	kernels.Backend
	stream kernels.Stream
	err    error
}

func newBench(b kernels.Backend, threads int) *bench {
	return &bench{Backend: b, stream: b.NewStream(kernels.StreamOptions{Parallelism: threads})}
}

// view keeps the error of an allocation.
func (b *bench) view(v kernels.View, err error) kernels.View {
	if b.err == nil {
		b.err = err
	}
	return v
}

// floats are n written floats: memory that was never written would be one page, and always in the cache.
func (b *bench) floats(n int) kernels.View {
	host := make([]float32, n)
	for i := range host {
		host[i] = float32(i%101)/101 - 0.5
	}
	return b.view(b.Wrap(host))
}

// roundedRows are rows of bfloat16.
func (b *bench) roundedRows(rows, cols int) kernels.View {
	v := b.view(b.Halves(b.RoundedLen(rows, cols)))
	b.RoundRows(b.stream, v, b.floats(rows*cols), rows, cols)
	return v
}

// exact is a product in float32.
func (b *bench) exact(kind string, z kernels.Shape) func() {
	c, s := b.floats(z.M*z.N), b.stream
	switch kind {
	case "NN":
		a, w := b.floats(z.M*z.K), b.floats(z.K*z.N)
		return func() { b.GemmNN(s, c, a, w, z, false) }
	case "TN":
		a, x := b.floats(z.K*z.M), b.floats(z.K*z.N)
		return func() { b.GemmTN(s, c, a, x, z, true) }
	}
	a, w, packed := b.floats(z.M*z.K), b.floats(z.N*z.K), b.floats(b.PackedLen(kernels.F32, z.N, z.K))
	b.Pack(s, packed, w, z.N, z.K)
	return func() {
		if kind == "PACK" {
			b.Pack(s, packed, w, z.N, z.K)
		}
		b.GemmNT(s, c, a, packed, z, false)
	}
}

// rounded is a product of bfloat16 operands.
func (b *bench) rounded(kind string, z kernels.Shape) func() {
	c, s := b.floats(z.M*z.N), b.stream
	switch kind {
	case "NN":
		a, w := b.roundedRows(z.M, z.K), b.view(b.Halves(b.PackedLen(kernels.BF16, z.N, z.K)))
		b.PackNN(s, w, b.floats(z.K*z.N), z.N, z.K)
		return func() { b.GemmNN(s, c, a, w, z, false) }
	case "TN":
		a, x := b.roundedRows(z.K, z.M), b.roundedRows(z.K, z.N)
		return func() { b.GemmTNRounded(s, c, a, x, z, []int{0, z.K}, true) }
	}
	x, w := b.floats(z.M*z.K), b.floats(z.N*z.K)
	a, packed := b.roundedRows(z.M, z.K), b.view(b.Halves(b.PackedLen(kernels.BF16, z.N, z.K)))
	b.Pack(s, packed, w, z.N, z.K)
	return func() {
		if kind == "PACK" {
			b.Pack(s, packed, w, z.N, z.K)
			b.RoundRows(s, a, x, z.M, z.K)
		}
		b.GemmNT(s, c, a, packed, z, false)
	}
}
