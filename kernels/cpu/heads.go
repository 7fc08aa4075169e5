package cpu

import (
	"math"
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// headViews are the resolved operands of Heads and HeadsGrad; wq and wk are nil when heads are not normalised.
type headViews struct {
	qkv, wq, wk, cos, sin []float32
	pos                   []int32
}

func (s *stream) heads(op string, a *kernels.HeadsArgs) headViews {
	d := a.Geometry.Dim
	v := headViews{
		qkv: s.floats(op, "QKV", a.QKV, a.Rows*a.Geometry.QKV()),
		cos: s.atLeast(op, "Cos", a.Cos, d/2), sin: s.atLeast(op, "Sin", a.Sin, d/2),
		pos: s.ints(op, "Positions", a.Positions, a.Rows),
	}
	if !a.WQ.Absent() || !a.WK.Absent() {
		v.wq, v.wk = s.floats(op, "WQ", a.WQ, d), s.floats(op, "WK", a.WK, d)
	}
	if s.err == nil {
		s.inRange(op, v.pos, min(len(v.cos), len(v.sin))/(d/2))
	}
	return v
}

func (v *headViews) angles(row, dim int) (cos, sin []float32) {
	p, h := int(v.pos[row]), dim/2
	return v.cos[p*h : (p+1)*h], v.sin[p*h : (p+1)*h]
}

// queryScale is the factor of scores, applied to queries.
func queryScale(dim int) float32 { return float32(1 / math.Sqrt(float64(dim))) }

// Heads splits, normalises, rotates and scales.
func (b *Backend) Heads(s kernels.Stream, a kernels.HeadsArgs) {
	st, g := s.(*stream), a.Geometry
	v := st.heads("Heads", &a)
	q := st.floats("Heads", "Q", a.Q, a.Rows*g.Heads*g.Dim)
	k := st.floats("Heads", "K", a.K, a.Rows*g.KVHeads*g.Dim)
	vv := st.floats("Heads", "V", a.V, a.Rows*g.KVHeads*g.Dim)
	if st.err != nil {
		return
	}
	st.rows(a.Rows, rowsOf(4*g.QKV()), func(w *worker, from, to int) {
		tmp := w.buffer(0, g.Dim)
		for r := from; r < to; r++ {
			b.headRow(&a, &v, r, q, k, vv, tmp)
		}
	})
}

// queryAt is the offset of query head h of row r in the layout [KVHeads, Rows*Group, Dim].
func queryAt(g kernels.Geometry, rows, r, h int) int {
	n := g.Group()
	return ((h/n*rows+r)*n + h%n) * g.Dim
}

// headGroup is the argument of the assembly that normalises and rotates heads that lie side by side: those of a row of x, whose other sides
// lie jump bytes apart. Its kernels do what headRow and headRowGrad do head by head.
type headGroup struct {
	x, w, cos, sin, out unsafe.Pointer
	heads, groups       int     // groups of 16 floats of a head
	jump, half          uintptr // bytes
	dim, eps            float32
	sign, factor        float32 // of the rotation
	dx                  unsafe.Pointer
}

// vectorised reports whether heads go to assembly.
func (b *Backend) vectorised(v *headViews, dim int) bool {
	return b.isa == avx512 && v.wq != nil && dim%lanes == 0
}

// group is the heads of one kind of row r from head h on; sign is that of their rotation.
func (v *headViews) group(a *kernels.HeadsArgs, r, h, heads int, sign float32) headGroup {
	g := a.Geometry
	cos, sin := v.angles(r, g.Dim)
	q := headGroup{x: unsafe.Pointer(&v.qkv[r*g.QKV()+h*g.Dim]), w: unsafe.Pointer(&v.wk[0]), cos: unsafe.Pointer(&cos[0]), sin: unsafe.Pointer(&sin[0]),
		heads: heads, groups: g.Dim / lanes, jump: 4 * uintptr(a.Rows*g.Dim), half: 2 * uintptr(g.Dim), dim: float32(g.Dim), eps: a.Eps, sign: sign, factor: 1}
	if h < g.Heads {
		q.w, q.jump, q.factor = unsafe.Pointer(&v.wq[0]), 4*uintptr(g.Dim), queryScale(g.Dim)
	}
	return q
}

// headGroups normalises and rotates the heads of a row.
func (b *Backend) headGroups(a *kernels.HeadsArgs, v *headViews, r int, q, k []float32) {
	g := a.Geometry
	for h := 0; h < g.Heads; h += g.Group() {
		x := v.group(a, r, h, g.Group(), 1)
		x.out = unsafe.Pointer(&q[queryAt(g, a.Rows, r, h)])
		avx512NormHeads(&x)
	}
	x := v.group(a, r, g.Heads, g.KVHeads, 1)
	x.out = unsafe.Pointer(&k[r*g.Dim])
	avx512NormHeads(&x)
}

// headGroupsGrad is the gradient of headGroups; see headRowGrad.
func (b *Backend) headGroupsGrad(a *kernels.HeadsArgs, v *headViews, r int, dq, dk, drow []float32) {
	g := a.Geometry
	for h := 0; h < g.Heads; h += g.Group() {
		x := v.group(a, r, h, g.Group(), -1)
		x.out, x.dx = unsafe.Pointer(&dq[queryAt(g, a.Rows, r, h)]), unsafe.Pointer(&drow[h*g.Dim])
		avx512NormHeadsGrad(&x)
	}
	x := v.group(a, r, g.Heads, g.KVHeads, -1)
	x.out, x.dx = unsafe.Pointer(&dk[r*g.Dim]), unsafe.Pointer(&drow[g.Heads*g.Dim])
	avx512NormHeadsGrad(&x)
}

func (b *Backend) headRow(a *kernels.HeadsArgs, v *headViews, r int, q, k, vv, tmp []float32) {
	g := a.Geometry
	cos, sin := v.angles(r, g.Dim)
	row := v.qkv[r*g.QKV() : (r+1)*g.QKV()]
	heads := g.Heads + g.KVHeads
	if b.vectorised(v, g.Dim) {
		b.headGroups(a, v, r, q, k)
		heads = 0
	}
	for h := range heads {
		x, w, out := row[h*g.Dim:(h+1)*g.Dim], v.wk, k
		at, factor := ((h-g.Heads)*a.Rows+r)*g.Dim, float32(1)
		if h < g.Heads {
			w, out, at, factor = v.wq, q, queryAt(g, a.Rows, r, h), queryScale(g.Dim)
		}
		if w != nil {
			b.scaleWeight(tmp, x, w, b.rstd(x, a.Eps))
			x = tmp
		}
		b.rotate(out[at:at+g.Dim], x, cos, sin, 1, factor)
	}
	for h := range g.KVHeads {
		at := (h*a.Rows + r) * g.Dim
		copy(vv[at:at+g.Dim], row[(g.Heads+g.KVHeads+h)*g.Dim:])
	}
}

// HeadsGrad first turns DQ and DK, row by row, into the terms of the weights' gradients, then sums these over rows.
// The contents of DQ and DK are lost.
func (b *Backend) HeadsGrad(s kernels.Stream, a kernels.HeadsGradArgs) {
	st, g := s.(*stream), a.Geometry
	v := st.heads("HeadsGrad", &a.HeadsArgs)
	n := a.Rows * g.KVHeads * g.Dim
	dq, dk := st.floats("HeadsGrad", "DQ", a.DQ, a.Rows*g.Heads*g.Dim), st.floats("HeadsGrad", "DK", a.DK, n)
	dv, out := st.floats("HeadsGrad", "DV", a.DV, n), st.floats("HeadsGrad", "DQKV", a.DQKV, a.Rows*g.QKV())
	var dwq, dwk []float32
	if v.wq != nil {
		dwq, dwk = st.floats("HeadsGrad", "DWQ", a.DWQ, g.Dim), st.floats("HeadsGrad", "DWK", a.DWK, g.Dim)
	}
	if st.err != nil {
		return
	}
	st.rows(a.Rows, rowsOf(4*g.QKV()), func(w *worker, from, to int) {
		tmp := w.buffer(0, g.Dim)
		for r := from; r < to; r++ {
			b.headRowGrad(&a.HeadsArgs, &v, r, dq, dk, dv, out, tmp)
		}
	})
	if v.wq == nil {
		return
	}
	st.parallel(2, func(_ *worker, i int) {
		if i == 0 {
			b.sumHeads(dwq, dq, g, a.Rows, g.Heads)
		} else {
			b.sumHeads(dwk, dk, kernels.Geometry{Heads: g.KVHeads, KVHeads: g.KVHeads, Dim: g.Dim}, a.Rows, g.KVHeads)
		}
	})
}

func (b *Backend) sumHeads(dw, terms []float32, g kernels.Geometry, rows, heads int) {
	if b.isa == avx512 && g.Dim%lanes == 0 && rows > 0 {
		head := 4 * uintptr(g.Dim)
		avx512AddHeads(&dw[0], &terms[0], rows, g.KVHeads, g.Group(), head, head*uintptr(rows*g.Group()))
		return
	}
	for r := range rows {
		for h := range heads {
			at := queryAt(g, rows, r, h)
			b.accumulate(dw, terms[at:at+g.Dim])
		}
	}
}

func (b *Backend) headRowGrad(a *kernels.HeadsArgs, v *headViews, r int, dq, dk, dv, out, tmp []float32) {
	g := a.Geometry
	cos, sin := v.angles(r, g.Dim)
	row, drow := v.qkv[r*g.QKV():(r+1)*g.QKV()], out[r*g.QKV():(r+1)*g.QKV()]
	heads := g.Heads + g.KVHeads
	if b.vectorised(v, g.Dim) {
		b.headGroupsGrad(a, v, r, dq, dk, drow)
		heads = 0
	}
	for h := range heads {
		x, dx := row[h*g.Dim:(h+1)*g.Dim], drow[h*g.Dim:(h+1)*g.Dim]
		d, w, factor := dq, v.wq, queryScale(g.Dim)
		at := queryAt(g, a.Rows, r, h)
		if h >= g.Heads {
			d, w, factor, at = dk, v.wk, 1, ((h-g.Heads)*a.Rows+r)*g.Dim
		}
		terms := d[at : at+g.Dim]
		if w == nil {
			b.rotate(dx, terms, cos, sin, -1, factor)
			continue
		}
		b.rotate(tmp, terms, cos, sin, -1, factor)
		rstd := b.rstd(x, a.Eps)
		clear(dx)
		b.normRowGrad(dx, tmp, x, w, rstd)
		b.scaleWeight(terms, x, tmp, rstd)
	}
	for h := range g.KVHeads {
		at := (h*a.Rows + r) * g.Dim
		copy(drow[(g.Heads+g.KVHeads+h)*g.Dim:], dv[at:at+g.Dim])
	}
}
