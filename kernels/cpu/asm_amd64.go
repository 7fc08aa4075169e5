package cpu

import "unsafe"

//go:generate go run ./asmgen

const hasAssembly = true

// asmPanel runs a panel micro-kernel. AVX2 holds half a panel in its registers.
func asmPanel(i isa, t *tile, transposed bool) {
	switch {
	case i == avx512 && transposed:
		avx512PanelCols(t)
	case i == avx512:
		avx512PanelRows(t)
	default:
		avx2Half(t, min(t.n, panel/2), transposed)
		if t.n > panel/2 {
			r := *t
			r.b, r.c = unsafe.Add(t.b, 2*panel), unsafe.Add(t.c, 2*panel)
			avx2Half(&r, t.n-panel/2, transposed)
		}
	}
}

func avx2Half(t *tile, n int, transposed bool) {
	h := *t
	h.n = n
	switch full := n == panel/2; {
	case full && transposed:
		avx2PanelCols(&h)
	case full:
		avx2PanelRows(&h)
	case transposed:
		avx2MaskedCols(&h)
	default:
		avx2MaskedRows(&h)
	}
}

func asmWiden(i isa, even, odd, src *float32, words int) {
	if i == avx512 {
		avx512Widen(even, odd, src, words)
		return
	}
	avx2Widen(even, odd, src, words)
}

func asmMax(i isa, x *float32, blocks int, acc *[lanes]float32) {
	if i == avx512 {
		avx512Max(x, blocks, acc)
		return
	}
	avx2Max(x, blocks, acc)
}

func asmExpSum(i isa, x *float32, blocks int, m float32, sum, weighted *[lanes]float32) {
	if i == avx512 {
		avx512ExpSum(x, blocks, m, sum, weighted)
		return
	}
	avx2ExpSum(x, blocks, m, sum, weighted)
}

func asmProbsGrad(i isa, x *float32, blocks int, lse, coef float32) {
	if i == avx512 {
		avx512ProbsGrad(x, blocks, lse, coef)
		return
	}
	avx2ProbsGrad(x, blocks, lse, coef)
}

func asmDot(i isa, x, y *float32, blocks int, acc *[lanes]float32) {
	if i == avx512 {
		avx512Dot(x, y, blocks, acc)
		return
	}
	avx2Dot(x, y, blocks, acc)
}

func asmTriple(i isa, x, y, z *float32, blocks int, acc *[lanes]float32) {
	if i == avx512 {
		avx512Triple(x, y, z, blocks, acc)
		return
	}
	avx2Triple(x, y, z, blocks, acc)
}

func asmScaleWeight(i isa, y, x, w *float32, blocks int, r float32) {
	if i == avx512 {
		avx512ScaleWeight(y, x, w, blocks, r)
		return
	}
	avx2ScaleWeight(y, x, w, blocks, r)
}

func asmNormGrad(i isa, dx, dy, x, w *float32, blocks int, r, c float32) {
	if i == avx512 {
		avx512NormGrad(dx, dy, x, w, blocks, r, c)
		return
	}
	avx2NormGrad(dx, dy, x, w, blocks, r, c)
}

func asmNormWeightGrad(i isa, dw, dy, x *float32, blocks int, r float32) {
	if i == avx512 {
		avx512NormWeightGrad(dw, dy, x, blocks, r)
		return
	}
	avx2NormWeightGrad(dw, dy, x, blocks, r)
}

func asmScale(i isa, x *float32, blocks int, f float32) {
	if i == avx512 {
		avx512Scale(x, blocks, f)
		return
	}
	avx2Scale(x, blocks, f)
}

func asmAccumulate(i isa, dst, src *float32, blocks int) {
	if i == avx512 {
		avx512Accumulate(dst, src, blocks)
		return
	}
	avx2Accumulate(dst, src, blocks)
}

func asmSwiglu(i isa, y, gate, up *float32, blocks int) {
	if i == avx512 {
		avx512Swiglu(y, gate, up, blocks)
		return
	}
	avx2Swiglu(y, gate, up, blocks)
}

func asmSwigluGrad(i isa, dg, du, dy, gate, up *float32, blocks int) {
	if i == avx512 {
		avx512SwigluGrad(dg, du, dy, gate, up, blocks)
		return
	}
	avx2SwigluGrad(dg, du, dy, gate, up, blocks)
}

func asmSoftmaxRows(i isa, s *float32, rows int, n *int32, m, l, alpha *float32) {
	if i == avx512 {
		avx512SoftmaxRows(s, rows, n, m, l, alpha)
		return
	}
	avx2SoftmaxRows(s, rows, n, m, l, alpha)
}

func asmProbRows(i isa, s, dp *float32, rows int, n *int32, lse, d *float32) {
	if i == avx512 {
		avx512ProbRows(s, dp, rows, n, lse, d)
		return
	}
	avx2ProbRows(s, dp, rows, n, lse, d)
}

func asmAdamW(i isa, w, m, v, grad *float32, blocks int, c *adamwConstants) {
	if i == avx512 {
		avx512AdamW(w, m, v, grad, blocks, c)
		return
	}
	avx2AdamW(w, m, v, grad, blocks, c)
}

//go:noescape
func avx512PanelRows(t *tile)

//go:noescape
func avx512PanelCols(t *tile)

//go:noescape
func avx512PairsRows(t *tile)

//go:noescape
func avx512PairsCols(t *tile)

//go:noescape
func avx512WidenedRows(t *tile)

//go:noescape
func avx512RoundRow(dst *uint16, src *float32, blocks int)

//go:noescape
func avx512RoundPair(dst *float32, stride uintptr, x, y *float32, panels int)

//go:noescape
func avx512PairRows(dst *float32, stride uintptr, x, y *uint16, step uintptr, groups, pairs int)

//go:noescape
func avx512Transpose(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, groups int)

//go:noescape
func avx512CopyPanels(dst *float32, stride uintptr, src *float32, blocks int)

//go:noescape
func avx512CopyGroups(dst *float32, stride uintptr, src *float32, blocks int)

//go:noescape
func avx512DotFold(x, y *float32, blocks int) float32

//go:noescape
func avx512TripleFold(x, y, z *float32, blocks int) float32

//go:noescape
func avx512Widen(even, odd, src *float32, words int)

//go:noescape
func avx2Widen(even, odd, src *float32, words int)

//go:noescape
func avx512Rotate(out, x, cos, sin *float32, half, blocks int, sign, factor float32)

//go:noescape
func avx512NormHeads(v *headGroup)

//go:noescape
func avx512NormHeadsGrad(v *headGroup)

//go:noescape
func avx512AddHeads(dst, src *float32, rows, outer, inner int, width, jump uintptr)

//go:noescape
func avx512NormWeightSums(dw, dy, x, rstd *float32, rows int, stride uintptr)

//go:noescape
func avx512SumSquares(x *float32, blocks int, acc *[lanes]float64)

//go:noescape
func avx512Max(x *float32, blocks int, acc *[lanes]float32)

//go:noescape
func avx512ExpSum(x *float32, blocks int, m float32, sum, weighted *[lanes]float32)

//go:noescape
func avx512ProbsGrad(x *float32, blocks int, lse, coef float32)

//go:noescape
func avx512Dot(x, y *float32, blocks int, acc *[lanes]float32)

//go:noescape
func avx512Triple(x, y, z *float32, blocks int, acc *[lanes]float32)

//go:noescape
func avx512ScaleWeight(y, x, w *float32, blocks int, r float32)

//go:noescape
func avx512NormGrad(dx, dy, x, w *float32, blocks int, r, c float32)

//go:noescape
func avx512NormWeightGrad(dw, dy, x *float32, blocks int, r float32)

//go:noescape
func avx512Scale(x *float32, blocks int, f float32)

//go:noescape
func avx512Accumulate(dst, src *float32, blocks int)

//go:noescape
func avx512Swiglu(y, gate, up *float32, blocks int)

//go:noescape
func avx512SwigluGrad(dg, du, dy, gate, up *float32, blocks int)

//go:noescape
func avx512SoftmaxRows(s *float32, rows int, n *int32, m, l, alpha *float32)

//go:noescape
func avx512ProbRows(s, dp *float32, rows int, n *int32, lse, d *float32)

//go:noescape
func avx512AdamW(w, m, v, grad *float32, blocks int, c *adamwConstants)

//go:noescape
func avx2PanelRows(t *tile)

//go:noescape
func avx2PanelCols(t *tile)

//go:noescape
func avx2MaskedRows(t *tile)

//go:noescape
func avx2MaskedCols(t *tile)

//go:noescape
func avx2Max(x *float32, blocks int, acc *[lanes]float32)

//go:noescape
func avx2ExpSum(x *float32, blocks int, m float32, sum, weighted *[lanes]float32)

//go:noescape
func avx2ProbsGrad(x *float32, blocks int, lse, coef float32)

//go:noescape
func avx2Dot(x, y *float32, blocks int, acc *[lanes]float32)

//go:noescape
func avx2Triple(x, y, z *float32, blocks int, acc *[lanes]float32)

//go:noescape
func avx2ScaleWeight(y, x, w *float32, blocks int, r float32)

//go:noescape
func avx2NormGrad(dx, dy, x, w *float32, blocks int, r, c float32)

//go:noescape
func avx2NormWeightGrad(dw, dy, x *float32, blocks int, r float32)

//go:noescape
func avx2Scale(x *float32, blocks int, f float32)

//go:noescape
func avx2Accumulate(dst, src *float32, blocks int)

//go:noescape
func avx2Swiglu(y, gate, up *float32, blocks int)

//go:noescape
func avx2SwigluGrad(dg, du, dy, gate, up *float32, blocks int)

//go:noescape
func avx2SoftmaxRows(s *float32, rows int, n *int32, m, l, alpha *float32)

//go:noescape
func avx2ProbRows(s, dp *float32, rows int, n *int32, lse, d *float32)

//go:noescape
func avx2AdamW(w, m, v, grad *float32, blocks int, c *adamwConstants)
