package cpu

// This file sends whole groups of 16 elements to the assembly of the backend's path and the rest to the portable functions.

// whole is the number of elements of a row of n that assembly takes.
func (b *Backend) whole(n int) int {
	if b.isa == generic {
		return 0
	}
	return n &^ (lanes - 1)
}

func (b *Backend) panelRows(t *tile) {
	if b.isa == generic {
		panelPortable(t, false)
		return
	}
	asmPanel(b.isa, t, false)
}

func (b *Backend) panelCols(t *tile) {
	if b.isa == generic {
		panelPortable(t, true)
		return
	}
	asmPanel(b.isa, t, true)
}

func (b *Backend) maxLanes(x []float32, acc *[lanes]float32) {
	n := b.whole(len(x))
	if n > 0 {
		asmMax(b.isa, &x[0], n/lanes, acc)
	}
	maxLanes(x[n:], acc)
}

func (b *Backend) expSumLanes(x []float32, m float32, sum, weighted *[lanes]float32) {
	n := b.whole(len(x))
	if n > 0 {
		asmExpSum(b.isa, &x[0], n/lanes, m, sum, weighted)
	}
	expSumLanes(x[n:], m, sum, weighted)
}

func (b *Backend) probsGrad(x []float32, lse, coef float32) {
	n := b.whole(len(x))
	if n > 0 {
		asmProbsGrad(b.isa, &x[0], n/lanes, lse, coef)
	}
	probsGrad(x[n:], lse, coef)
}

func (b *Backend) sumSquares(x []float32) float32 { return b.dot(x, x) }

func (b *Backend) dot(x, y []float32) float32 {
	n := b.whole(len(x))
	if n > 0 && n == len(x) && b.isa == avx512 {
		return avx512DotFold(&x[0], &y[0], n/lanes)
	}
	var acc [lanes]float32
	if n > 0 {
		asmDot(b.isa, &x[0], &y[0], n/lanes, &acc)
	}
	dotLanes(x[n:], y[n:], &acc)
	return fold(&acc)
}

func (b *Backend) triple(x, y, z []float32) float32 {
	n := b.whole(len(x))
	if n > 0 && n == len(x) && b.isa == avx512 {
		return avx512TripleFold(&x[0], &y[0], &z[0], n/lanes)
	}
	var acc [lanes]float32
	if n > 0 {
		asmTriple(b.isa, &x[0], &y[0], &z[0], n/lanes, &acc)
	}
	tripleLanes(x[n:], y[n:], z[n:], &acc)
	return fold(&acc)
}

func (b *Backend) scaleWeight(y, x, w []float32, r float32) {
	n := b.whole(len(x))
	if n > 0 {
		asmScaleWeight(b.isa, &y[0], &x[0], &w[0], n/lanes, r)
	}
	scaleWeight(y[n:], x[n:], w[n:], r)
}

func (b *Backend) normGrad(dx, dy, x, w []float32, r, c float32) {
	n := b.whole(len(x))
	if n > 0 {
		asmNormGrad(b.isa, &dx[0], &dy[0], &x[0], &w[0], n/lanes, r, c)
	}
	normGrad(dx[n:], dy[n:], x[n:], w[n:], r, c)
}

func (b *Backend) normWeightGrad(dw, dy, x []float32, r float32) {
	n := b.whole(len(x))
	if n > 0 {
		asmNormWeightGrad(b.isa, &dw[0], &dy[0], &x[0], n/lanes, r)
	}
	normWeightGrad(dw[n:], dy[n:], x[n:], r)
}

func (b *Backend) scale(x []float32, a float32) {
	n := b.whole(len(x))
	if n > 0 {
		asmScale(b.isa, &x[0], n/lanes, a)
	}
	scale(x[n:], a)
}

func (b *Backend) accumulate(dst, src []float32) {
	n := b.whole(len(dst))
	if n > 0 {
		asmAccumulate(b.isa, &dst[0], &src[0], n/lanes)
	}
	accumulate(dst[n:], src[n:])
}

func (b *Backend) swiglu(y, g, u []float32) {
	n := b.whole(len(y))
	if n > 0 {
		asmSwiglu(b.isa, &y[0], &g[0], &u[0], n/lanes)
	}
	swiglu(y[n:], g[n:], u[n:])
}

func (b *Backend) swigluGrad(dg, du, dy, g, u []float32) {
	n := b.whole(len(dy))
	if n > 0 {
		asmSwigluGrad(b.isa, &dg[0], &du[0], &dy[0], &g[0], &u[0], n/lanes)
	}
	swigluGrad(dg[n:], du[n:], dy[n:], g[n:], u[n:])
}

func (b *Backend) softmaxRows(s []float32, n []int32, m, l, alpha []float32) {
	if b.isa == generic {
		softmaxRows(s, n, m, l, alpha)
		return
	}
	asmSoftmaxRows(b.isa, &s[0], len(n), &n[0], &m[0], &l[0], &alpha[0])
}

func (b *Backend) probRows(s, dp []float32, n []int32, lse, d []float32) {
	if b.isa == generic {
		probRows(s, dp, n, lse, d)
		return
	}
	asmProbRows(b.isa, &s[0], &dp[0], len(n), &n[0], &lse[0], &d[0])
}

func (b *Backend) rotate(out, x, cos, sin []float32, sign, factor float32) {
	if h := len(cos); h > 0 && h%8 == 0 && b.isa == avx512 {
		avx512Rotate(&out[0], &x[0], &cos[0], &sin[0], h, h/8, sign, factor)
		return
	}
	rotate(out, x, cos, sin, sign, factor)
}

func (b *Backend) adamw(w, m, v, g []float32, c *adamwConstants) {
	n := b.whole(len(w))
	if n > 0 {
		asmAdamW(b.isa, &w[0], &m[0], &v[0], &g[0], n/lanes, c)
	}
	adamw(w[n:], m[n:], v[n:], g[n:], c)
}
