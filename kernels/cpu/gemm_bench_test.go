package cpu

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/restar-rl/restar/kernels"
)

// threadTime is the processor time of the calling thread: on a shared machine it says more than the clock.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// bestOf runs f until a benchmark's time is up and reports its best run in 1e9 operations a second. On one
// thread it counts processor time, on more the clock.
func bestOf(b *testing.B, threads int, operations float64, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
	best := time.Duration(1 << 62)
	for b.Loop() {
		cpu, wall := threadTime(), time.Now()
		f()
		d := time.Since(wall)
		if threads == 1 {
			d = threadTime() - cpu
		}
		best = min(best, d)
	}
	rate := operations / float64(best)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rate, "GFLOP/s")
}

type gemmBench struct {
	kind string
	kernels.Shape
}

// stepShapes are the products of a training step: a layer's of the models of 1M, 10M and 135M parameters.
var stepShapes = []gemmBench{
	{"NT+pack", kernels.Shape{M: 512, N: 2048, K: 2048}},
	{"NT", kernels.Shape{M: 512, N: 2048, K: 2048}},
	{"NN", kernels.Shape{M: 512, N: 2048, K: 2048}},
	{"TN", kernels.Shape{M: 2048, N: 2048, K: 512}},
	{"NT", kernels.Shape{M: 2048, N: 768, K: 128}}, {"NT", kernels.Shape{M: 2048, N: 128, K: 384}}, {"NT", kernels.Shape{M: 2048, N: 128, K: 128}},
	{"NN", kernels.Shape{M: 2048, N: 384, K: 128}}, {"NN", kernels.Shape{M: 2048, N: 128, K: 768}},
	{"TN", kernels.Shape{M: 768, N: 128, K: 2048}}, {"TN", kernels.Shape{M: 128, N: 384, K: 2048}},
	{"NT", kernels.Shape{M: 512, N: 3072, K: 576}}, {"NT", kernels.Shape{M: 512, N: 576, K: 1536}}, {"NT", kernels.Shape{M: 512, N: 960, K: 576}},
	{"NN", kernels.Shape{M: 512, N: 1536, K: 576}}, {"NN", kernels.Shape{M: 512, N: 576, K: 3072}},
	{"TN", kernels.Shape{M: 3072, N: 576, K: 512}}, {"TN", kernels.Shape{M: 576, N: 1536, K: 512}},
	{"NT", kernels.Shape{M: 8, N: 3072, K: 576}}, {"NT", kernels.Shape{M: 64, N: 3072, K: 576}}, {"NT", kernels.Shape{M: 64, N: 576, K: 1536}},
}

func BenchmarkGemm(b *testing.B) {
	bk, err := FromEnv()
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range []kernels.Precision{kernels.PrecisionFP32, kernels.PrecisionBF16} {
		for threads := 1; threads <= runtime.GOMAXPROCS(0); threads *= 2 {
			for _, z := range stepShapes {
				b.Run(fmt.Sprintf("%s/threads=%d/%s-%dx%dx%d", p, threads, z.kind, z.M, z.N, z.K), func(b *testing.B) {
					bestOf(b, threads, 2*float64(z.M)*float64(z.N)*float64(z.K), bk.gemmOnce(p, threads, z))
				})
			}
		}
	}
}

// gemmOnce returns one product from float32 inputs; "NT+pack" also packs its weights and rounds its left operand.
func (b *Backend) gemmOnce(p kernels.Precision, threads int, z gemmBench) func() {
	s := b.NewStream(kernels.StreamOptions{Parallelism: threads})
	t := p.Operand()
	alloc := func(t kernels.DType, n int) kernels.View { // written, so that every page is there
		if t == kernels.BF16 {
			v, _ := b.Halves(n)
			for i, h := range v.Mem.(*memory).halves {
				v.Mem.(*memory).halves[i] = h + 0x3f80
			}
			return v
		}
		v, _ := b.Floats(n)
		for i := range v.Mem.(*memory).floats {
			v.Mem.(*memory).floats[i] = 1 + float32(i%7)
		}
		return v
	}
	c, x, w := alloc(kernels.F32, z.M*z.N), alloc(kernels.F32, z.M*z.K), alloc(kernels.F32, z.N*z.K)
	packed := alloc(t, b.PackedLen(t, z.N, z.K))
	a, r := x, w
	if t == kernels.BF16 {
		a, r = alloc(t, b.RoundedLen(z.M, z.K)+z.M*z.K), packed
	}
	switch z.kind {
	case "NT+pack":
		return func() {
			b.Pack(s, packed, w, z.N, z.K)
			if t == kernels.BF16 {
				a = a.Slice(0, b.RoundedLen(z.M, z.K))
				b.RoundRows(s, a, x, z.M, z.K)
			}
			b.GemmNT(s, c, a, packed, z.Shape, false)
		}
	case "NT":
		if t == kernels.BF16 {
			a = a.Slice(0, b.RoundedLen(z.M, z.K))
		}
		return func() { b.GemmNT(s, c, a, packed, z.Shape, false) }
	case "NN":
		if t == kernels.BF16 {
			a = a.Slice(0, b.RoundedLen(z.M, z.K))
		}
		return func() { b.GemmNN(s, c, a, r, z.Shape, false) }
	}
	if t == kernels.F32 {
		return func() { b.GemmTN(s, c, a, r, z.Shape, true) }
	}
	left, right := alloc(t, b.RoundedLen(z.K, z.M)), alloc(t, b.RoundedLen(z.K, z.N))
	return func() { b.GemmTNRounded(s, c, left, right, z.Shape, []int{0, z.K}, true) }
}
