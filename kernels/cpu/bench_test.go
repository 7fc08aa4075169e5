package cpu

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/restar-rl/restar/kernels"
)

// cpuTime is the processor time of the process: on a shared machine it says more than the clock.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}

func BenchmarkPanel(b *testing.B) {
	bk, err := FromEnv()
	if err != nil {
		b.Fatal(err)
	}
	for _, z := range []struct {
		m, k, lda, ldb, ldc int
		cols                bool
	}{
		{96, 128, 128, 32, 256, false}, {96, 384, 384, 32, 128, false}, {96, 128, 128, 32, 1024, false}, {96, 128, 128, 384, 384, false},
		{48, 32, 32, 64, 64, false}, {48, 64, 64, 32, 32, false}, {2, 32, 32, 64, 64, false}, {1, 128, 128, 32, 256, false},
		{48, 128, 768, 128, 128, true}, {48, 128, 128, 384, 384, true}, {64, 48, 64, 32, 32, true},
	} {
		b.Run(fmt.Sprintf("m%d-k%d-ldb%d-ldc%d-cols=%v", z.m, z.k, z.ldb, z.ldc, z.cols), func(b *testing.B) {
			a, bb, c := make([]float32, 1<<20), make([]float32, 1<<20), make([]float32, 1<<20)
			t := tile{a: unsafe.Pointer(&a[0]), b: unsafe.Pointer(&bb[0]), c: unsafe.Pointer(&c[0]), lda: 4 * uintptr(z.lda), ldb: 4 * uintptr(z.ldb),
				ldc: 4 * uintptr(z.ldc), m: z.m, k: z.k, n: 32}
			start := cpuTime()
			for b.Loop() {
				if z.cols {
					bk.panelCols(&t)
				} else {
					bk.panelRows(&t)
				}
			}
			b.ReportMetric(float64(b.N)*2*float64(z.m*z.k*32)/float64(cpuTime()-start), "GFLOP/cpu-s")
		})
	}
}

func BenchmarkProducts(b *testing.B) {
	bk, err := FromEnv()
	if err != nil {
		b.Fatal(err)
	}
	for _, z := range []struct {
		kind string
		kernels.Shape
	}{
		{"NT", kernels.Shape{M: 4096, N: 768, K: 128}}, {"NT", kernels.Shape{M: 4096, N: 128, K: 384}}, {"NT", kernels.Shape{M: 128, N: 768, K: 128}},
		{"NN", kernels.Shape{M: 4096, N: 384, K: 128}}, {"NN", kernels.Shape{M: 4096, N: 128, K: 768}},
		{"TN", kernels.Shape{M: 768, N: 128, K: 4096}}, {"TN", kernels.Shape{M: 128, N: 384, K: 4096}}, {"TN", kernels.Shape{M: 1024, N: 128, K: 256}},
	} {
		b.Run(fmt.Sprintf("%s-%dx%dx%d", z.kind, z.M, z.N, z.K), func(b *testing.B) {
			a, _ := bk.Floats(z.M * z.K)
			w, _ := bk.Floats(max(z.N*z.K, bk.PackedLen(kernels.F32, z.N, z.K)))
			c, _ := bk.Floats(z.M * z.N)
			s := bk.NewStream(kernels.StreamOptions{})
			start := cpuTime()
			for b.Loop() {
				switch z.kind {
				case "NT":
					bk.GemmNT(s, c, a, w.Slice(0, bk.PackedLen(kernels.F32, z.N, z.K)), z.Shape, false)
				case "NN":
					bk.GemmNN(s, c, a, w.Slice(0, z.N*z.K), z.Shape, false)
				case "TN":
					bk.GemmTN(s, c, a, w.Slice(0, z.N*z.K), z.Shape, true)
				}
			}
			b.ReportMetric(float64(b.N)*2*float64(z.M*z.N*z.K)/float64(cpuTime()-start), "GFLOP/cpu-s")
		})
	}
}
