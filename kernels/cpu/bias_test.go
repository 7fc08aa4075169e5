package cpu

import (
	"slices"
	"testing"
)

func TestABiasAndItsGradientMatchTheOracle(t *testing.T) {
	const rows = 5
	onEveryPath(t, func(b *bench) {
		for _, n := range append(widths, 131) {
			x, bias, dy, d := b.random(rows*n), b.random(n), b.random(rows*n), b.random(n)
			want, grad := wide(x), wide(d)
			for r := range rows {
				for i := range n {
					want[r*n+i] += float64(bias[i])
					grad[i] += float64(dy[r*n+i])
				}
			}
			b.AddBias(b.s, b.view(x), b.view(bias), rows, n)
			b.BiasGrad(b.s, b.view(d), b.view(dy), rows, n)
			b.sync()
			b.near("x", x, want, 1e-7)
			b.near("dbias", d, grad, 1e-6)
		}
	})
}

func TestABiasGradientContinuesOverCalls(t *testing.T) {
	const rows, n = 7, 33
	onEveryPath(t, func(b *bench) {
		dy, one := b.random(rows*n), b.random(n)
		two := slices.Clone(one)
		b.BiasGrad(b.s, b.view(one), b.view(dy), rows, n)
		b.BiasGrad(b.s, b.view(two), b.view(dy[:3*n]), 3, n)
		b.BiasGrad(b.s, b.view(two), b.view(dy[3*n:]), rows-3, n)
		b.sync()
		if !slices.Equal(one, two) {
			b.t.Error("two calls over consecutive rows differ from one over all")
		}
	})
}
