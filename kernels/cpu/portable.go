package cpu

import (
	"math"
	"unsafe"
)

// The functions of this file define the portable path, and the assembly paths use them for what remains of a row after whole
// groups of 16 elements.

// lanes is the number of partial sums of a reduction: one 512-bit register, or two of 256 bits.
const lanes = 16

// fma is a*b+c. The product is exact in float64; the sum is rounded there and once more to float32, so a result can differ by one last
// place from a true fused multiply-add. It is the same on every machine, which is what the portable path promises.
func fma(a, b, c float32) float32 { return float32(float64(a)*float64(b) + float64(c)) }

// Cephes expf: argument reduction by ln 2 in two parts and a polynomial of degree 7 by Horner's rule, error below 2 units in the last place.
const (
	expHi = 88.3762626647950
	expLo = -87.3365478515625 // below it the result would be subnormal: it is 0
	log2e = 1.44269504088896341
	ln2Hi = 0.693359375
	ln2Lo = -2.12194440e-4
	expC0 = 1.9875691500e-4
	expC1 = 1.3981999507e-3
	expC2 = 8.3334519073e-3
	expC3 = 4.1665795894e-2
	expC4 = 1.6666665459e-1
	expC5 = 5.0000001201e-1
)

// exp is e^x with 0 below expLo.
func exp(x float32) float32 {
	if x < expLo {
		return 0
	}
	x = min(x, expHi)
	n := float32(math.RoundToEven(float64(x * log2e)))
	r := fma(n, -ln2Hi, x)
	r = fma(n, -ln2Lo, r)
	p := fma(expC0, r, expC1)
	p = fma(p, r, expC2)
	p = fma(p, r, expC3)
	p = fma(p, r, expC4)
	p = fma(p, r, expC5)
	p = fma(p, r, 1)
	p = fma(p, r, 1)
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}

// fold sums 16 lanes by halves.
func fold(l *[lanes]float32) float32 {
	for w := lanes / 2; w > 0; w /= 2 {
		for i := range w {
			l[i] += l[i+w]
		}
	}
	return l[0]
}

func panelPortable(t *tile, transposed bool) {
	stepI, stepP := t.lda, uintptr(4)
	if transposed {
		stepI, stepP = 4, t.lda
	}
	for i := range t.m {
		c := unsafe.Slice((*float32)(unsafe.Add(t.c, uintptr(i)*t.ldc)), t.n)
		if t.acc == 0 {
			clear(c)
		}
		for p := range t.k {
			a := *(*float32)(unsafe.Add(t.a, uintptr(i)*stepI+uintptr(p)*stepP))
			b := unsafe.Slice((*float32)(unsafe.Add(t.b, uintptr(p)*t.ldb)), t.n)
			for j := range c {
				c[j] = fma(a, b[j], c[j])
			}
		}
	}
}

// maxLanes raises lane i mod 16 to x[i].
func maxLanes(x []float32, acc *[lanes]float32) {
	for i, v := range x {
		acc[i%lanes] = max(acc[i%lanes], v)
	}
}

// expSumLanes adds e^(x-m) to sum and e^(x-m)(x-m) to weighted.
func expSumLanes(x []float32, m float32, sum, weighted *[lanes]float32) {
	for i, v := range x {
		d := v - m
		e := exp(d)
		sum[i%lanes] += e
		weighted[i%lanes] = fma(e, d, weighted[i%lanes])
	}
}

// probsGrad replaces x by -coef e^(x-lse).
func probsGrad(x []float32, lse, coef float32) {
	for i, v := range x {
		x[i] = -coef * exp(v-lse)
	}
}

// tripleLanes adds a*b*c.
func tripleLanes(a, b, c []float32, acc *[lanes]float32) {
	for i := range a {
		acc[i%lanes] = fma(float32(a[i]*b[i]), c[i], acc[i%lanes])
	}
}

// dotLanes adds a*b.
func dotLanes(a, b []float32, acc *[lanes]float32) {
	for i := range a {
		acc[i%lanes] = fma(a[i], b[i], acc[i%lanes])
	}
}

// scaleWeight is y = (x*r)*w.
func scaleWeight(y, x, w []float32, r float32) {
	for i := range y {
		y[i] = float32(x[i]*r) * w[i]
	}
}

// normGrad is dx += (dy*w)*r - x*c.
func normGrad(dx, dy, x, w []float32, r, c float32) {
	for i := range dx {
		t := fma(float32(dy[i]*w[i]), r, dx[i])
		dx[i] = fma(-c, x[i], t)
	}
}

// normWeightGrad is dw += dy*(x*r).
func normWeightGrad(dw, dy, x []float32, r float32) {
	for i := range dw {
		dw[i] = fma(dy[i], float32(x[i]*r), dw[i])
	}
}

func scale(x []float32, a float32) {
	for i := range x {
		x[i] *= a
	}
}

func accumulate(dst, src []float32) {
	for i, v := range src {
		dst[i] += v
	}
}

func swiglu(y, g, u []float32) {
	for i := range y {
		y[i] = float32(g[i]/(1+exp(-g[i]))) * u[i]
	}
}

// swigluGrad: with s = 1/(1+e^-g), dg = dy u s (1 + g(1-s)), du = dy g s.
func swigluGrad(dg, du, dy, g, u []float32) {
	for i := range dy {
		s := 1 / (1 + exp(-g[i]))
		gs := float32(g[i] * s)
		du[i] = dy[i] * gs
		dg[i] = float32(dy[i]*u[i]) * fma(gs, 1-s, s)
	}
}
