package cpu

import (
	"testing"

	"github.com/restar-rl/restar/kernels"
)

// TestRoundedRowsAreTheFloatsOfAnOperationRoundedOnce: what an operation leaves as an operand of a product is what RoundRows makes of
// its result in float32, padding included.
func TestRoundedRowsAreTheFloatsOfAnOperationRoundedOnce(t *testing.T) {
	const rows, eps = 5, 1e-3
	onEveryPath(t, func(b *bench) {
		for _, n := range widths {
			x, w, gu, dy := b.view(b.random(rows*n)), b.view(b.random(n)), b.view(b.random(2*rows*n)), b.view(b.random(rows*n))
			b.leavesRounded("RMSNorm", rows, n, func(y kernels.View) { b.RMSNorm(b.s, y, b.view(poison(rows)), x, w, rows, n, eps) })
			b.leavesRounded("SwiGLU", rows, n, func(y kernels.View) { b.SwiGLU(b.s, y, gu, rows, n) })
			b.leavesRounded("SwiGLUGrad", rows, 2*n, func(d kernels.View) { b.SwiGLUGrad(b.s, d, dy, gu, rows, n) })
		}
		for _, g := range geometries {
			c := b.cache(g, []int{0, 63, 10}, []int{70, 1, 3})
			_, _, a := b.attention(c)
			b.leavesRounded("Attention", c.rows, g.Heads*g.Dim, func(y kernels.View) {
				one := a
				one.Out, one.Rounded = y, kernels.View{}
				if dtype(y) == kernels.BF16 {
					one.Out, one.Rounded = kernels.View{}, y
				}
				b.Attention(b.s, one)
			})
		}
	})
}

// leavesRounded compares the two forms of a result of rows of n elements.
func (b *bench) leavesRounded(op string, rows, n int, run func(y kernels.View)) {
	b.t.Helper()
	floats := poison(rows * n)
	run(b.view(floats))
	want, got := b.rounded(floats, rows, n).Mem.(*memory).halves, b.rounded(poison(rows*n), rows, n)
	run(got)
	b.sync()
	for i, v := range got.Mem.(*memory).halves {
		if v != want[i] || v == 0x7fff {
			b.t.Errorf("%s of rows of %d: element %d is %#x, want %#x", op, n, i, v, want[i])
			return
		}
	}
}
