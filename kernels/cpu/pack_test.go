package cpu

import (
	"testing"

	"github.com/restar-rl/restar/kernels"
)

func TestPackedPanelsHoldEveryWeightOnceAndZeroBeyond(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, z := range []struct{ n, k int }{{1, 1}, {32, 16}, {33, 17}, {64, 48}, {47, 31}, {100, 83}, {70, 64}} {
			w := b.random(z.n * z.k)
			for _, c := range []struct {
				name string
				pack func(kernels.Stream, kernels.View, kernels.View, int, int)
				at   func(p, j int) float32
			}{
				{"Pack", b.Pack, func(p, j int) float32 { return w[j*z.k+p] }},
				{"PackNN", b.PackNN, func(p, j int) float32 { return w[p*z.n+j] }},
			} {
				floats := poison(b.PackedLen(kernels.F32, z.n, z.k))
				c.pack(b.s, b.view(floats), b.view(w), z.n, z.k)
				half, _ := b.Halves(b.PackedLen(kernels.BF16, z.n, z.k))
				halves := half.Mem.(*memory).halves
				for i := range halves {
					halves[i] = 0x7fff
				}
				c.pack(b.s, half, b.view(w), z.n, z.k)
				b.sync()
				for p := range even(z.k) {
					for j := range panels(z.n) * panel {
						want := float32(0)
						if p < z.k && j < z.n {
							want = c.at(p, j)
						}
						panelOf, q := j/panel, j%panel
						if p < z.k && floats[(panelOf*z.k+p)*panel+q] != want {
							b.t.Fatalf("%s %+v: float of row %d, column %d differs", c.name, z, p, j)
						}
						if got := halves[(panelOf*even(z.k)/2+p/2)*2*panel+2*q+p%2]; got != roundBF16(want) {
							b.t.Fatalf("%s %+v: bfloat16 of row %d, column %d differs", c.name, z, p, j)
						}
					}
				}
			}
		}
	})
}
