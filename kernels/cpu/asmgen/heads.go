package main

import "math"

// heads emits what normalises and rotates heads of 16 floats or multiples of them, forward and backward. See headRow in heads.go.
func (a *asm) heads() {
	a.normHeads()
	a.normHeadsGrad()
	a.addHeads()
	a.normWeightSums()
}

// Registers of heads: SI x, DI w, R8 cos, R9 sin, DX the other side of a head, R11 heads left, R12 groups of 16 in a head, R13 bytes between
// heads of DX, R14 bytes of half a head. Z7 is the factor of the norm, Z8 the length of a head, Z9 eps, Y14 sign and Y15 factor of rotations.
func (a *asm) headArgs() {
	a.load("v", "R15")
	for i, r := range []string{"SI", "DI", "R8", "R9", "DX", "R11", "R12", "R13", "R14"} {
		a.op("MOVQ %d(R15), %s", 8*i, r)
	}
	for i, v := range []int{8, 9, 14, 15} {
		a.op("VBROADCASTSS %d(R15), Z%d", 72+4*i, v)
	}
}

// unit sets vector v to ones.
func (a *asm) unit(v int) {
	a.op("MOVL $%#x, AX", math.Float32bits(1))
	a.op("VPBROADCASTD AX, Z%d", v)
}

// headStd sets vector 7 to 1/sqrt(mean(x^2)+eps), the root and its inverse in float64.
func (a *asm) headStd() {
	a.zero(0)
	a.op("MOVQ SI, AX")
	a.op("MOVQ R12, CX")
	a.loop(func() {
		a.vec("VMOVUPS", at("AX"), 1)
		a.vec("VFMADD231PS", 1, 1, 0)
	}, "AX")
	a.fold("VADDPS", 0, 1)
	a.op("VDIVSS X8, X0, X0")
	a.op("VADDSS X9, X0, X0")
	a.op("VCVTSS2SD X0, X0, X0")
	a.op("VSQRTSD X0, X0, X0")
	a.op("VCVTSS2SD X10, X10, X1")
	a.op("VDIVSD X0, X1, X0")
	a.op("VCVTSD2SS X0, X0, X7")
	a.spread(7)
}

// rotateHead rotates what load leaves in Y0 and Y1, of element AX and its partner half a head on, and gives store the results there.
func (a *asm) rotateHead(load, store func()) {
	a.op("XORQ AX, AX")
	l := a.fresh("rotate")
	a.label(l)
	load()
	a.op("VMULPS (R8)(AX*1), Y15, Y2")
	a.op("VMULPS (R9)(AX*1), Y14, Y3")
	a.op("VMULPS Y15, Y3, Y3")
	a.rotation()
	store()
	a.op("ADDQ $32, AX")
	a.op("CMPQ AX, R14")
	a.op("JLT %s", l)
}

// normHeads writes heads of x, normalised with weights w and rotated.
func (a *asm) normHeads() {
	a.fn("NormHeads", "v")
	a.headArgs()
	a.unit(10)
	head := a.fresh("head")
	a.label(head)
	a.headStd()
	a.op("LEAQ (SI)(R14*1), R10")
	a.op("LEAQ (DI)(R14*1), R15")
	a.op("LEAQ (DX)(R14*1), CX")
	a.rotateHead(func() {
		a.op("VMULPS (SI)(AX*1), Y7, Y0")
		a.op("VMULPS (R10)(AX*1), Y7, Y1")
		a.op("VMULPS (DI)(AX*1), Y0, Y0")
		a.op("VMULPS (R15)(AX*1), Y1, Y1")
	}, func() {
		a.op("VMOVUPS Y0, (DX)(AX*1)")
		a.op("VMOVUPS Y1, (CX)(AX*1)")
	})
	a.op("LEAQ (SI)(R14*2), SI")
	a.op("ADDQ R13, DX")
	a.op("DECQ R11")
	a.op("JNZ %s", head)
	a.ret()
}

// normHeadsGrad takes the gradients of what normHeads wrote, which lie at DX, and writes those of x to BX; it replaces what lies at DX by the
// terms of the gradient of w. The rotated gradient waits at BX.
func (a *asm) normHeadsGrad() {
	a.fn("NormHeadsGrad", "v")
	a.headArgs()
	a.op("MOVQ 88(R15), BX")
	a.unit(10)
	head := a.fresh("head")
	a.label(head)
	a.headStd()
	a.op("LEAQ (DX)(R14*1), R10")
	a.op("LEAQ (BX)(R14*1), CX")
	a.rotateHead(func() {
		a.op("VMOVUPS (DX)(AX*1), Y0")
		a.op("VMOVUPS (R10)(AX*1), Y1")
	}, func() {
		a.op("VMOVUPS Y0, (BX)(AX*1)")
		a.op("VMOVUPS Y1, (CX)(AX*1)")
	})
	walk := func() {
		a.op("MOVQ SI, AX")
		a.op("MOVQ DI, R10")
		a.op("MOVQ BX, R15")
		a.op("MOVQ R12, CX")
	}
	walk()
	a.zero(0)
	a.loop(func() {
		a.vec("VMOVUPS", at("R15"), 1)
		a.vec("VMULPS", at("R10"), 1, 1)
		a.vec("VFMADD231PS", at("AX"), 1, 0)
	}, "AX", "R10", "R15")
	a.fold("VADDPS", 0, 1)
	a.op("VDIVSS X8, X0, X0")
	a.op("VMULSS X7, X7, X1")
	a.op("VMULSS X7, X1, X1")
	a.op("VMULSS X0, X1, X6")
	a.spread(6)
	walk()
	a.zero(5)
	a.op("MOVQ DX, R11") // restored below
	a.loop(func() {
		a.vec("VMOVUPS", at("R15"), 0)
		a.vec("VMOVUPS", at("AX"), 1)
		a.vec("VMULPS", 1, 7, 2)
		a.vec("VMULPS", 0, 2, 2)
		a.vec("VMOVUPS", 2, at("R11"))
		a.vec("VMULPS", at("R10"), 0, 0)
		a.vec("VFMADD213PS", 5, 7, 0)
		a.vec("VFNMADD231PS", 1, 6, 0)
		a.vec("VMOVUPS", 0, at("R15"))
	}, "AX", "R10", "R15", "R11")
	a.op("LEAQ (SI)(R14*2), SI")
	a.op("LEAQ (BX)(R14*2), BX")
	a.op("ADDQ R13, DX")
	a.load("v", "R15")
	a.op("DECQ 40(R15)")
	a.op("JNZ %s", head)
	a.ret()
}

// addHeads adds heads of width floats, which lie in groups of rows, to dst: dst += src[k][r][g] for rows r ascending, in a row for k and then g
// ascending. It takes a group of 16 elements after the other.
//
// Register use: DX dst, SI src, R8 rows, R9 outer heads k, R10 inner heads g, R11 bytes of a head, R12 bytes between outer heads; R13, AX, BX
// walk; CX, R14, R15 count.
func (a *asm) addHeads() {
	a.fn("AddHeads", "dst", "src", "rows", "outer", "inner", "width", "jump")
	a.loads("dst", "DX", "src", "SI", "rows", "R8", "outer", "R9", "inner", "R10", "width", "R11", "jump", "R12")
	a.op("MOVQ R11, DI")
	group, row, outer, inner := a.fresh("group"), a.fresh("row"), a.fresh("outer"), a.fresh("inner")
	a.label(group)
	a.op("VMOVUPS (DX), Z0")
	a.op("MOVQ SI, R13")
	a.op("MOVQ R8, CX")
	a.label(row)
	a.op("MOVQ R13, AX")
	a.op("MOVQ R9, R14")
	a.label(outer)
	a.op("MOVQ AX, BX")
	a.op("MOVQ R10, R15")
	a.label(inner)
	a.op("VADDPS (BX), Z0, Z0")
	a.op("ADDQ R11, BX")
	a.op("DECQ R15")
	a.op("JNZ %s", inner)
	a.op("ADDQ R12, AX")
	a.op("DECQ R14")
	a.op("JNZ %s", outer)
	a.op("MOVQ R11, BX")
	a.op("IMULQ R10, BX")
	a.op("ADDQ BX, R13")
	a.op("DECQ CX")
	a.op("JNZ %s", row)
	a.op("VMOVUPS Z0, (DX)")
	a.op("ADDQ $64, DX")
	a.op("ADDQ $64, SI")
	a.op("SUBQ $64, DI")
	a.op("JNZ %s", group)
	a.ret()
}

// normWeightSums is normWeightGrad of 64 columns over rows, which lie stride bytes apart.
func (a *asm) normWeightSums() {
	a.fn("NormWeightSums", "dw", "dy", "x", "rstd", "rows", "stride")
	a.loads("dw", "DX", "dy", "SI", "x", "DI", "rstd", "BX", "rows", "CX", "stride", "R8")
	for i := range 4 {
		a.op("VMOVUPS %d(DX), Z%d", 64*i, i)
	}
	l := a.fresh("loop")
	a.label(l)
	a.op("VBROADCASTSS (BX), Z8")
	for i := range 4 {
		a.op("VMULPS %d(DI), Z8, Z%d", 64*i, 4+i)
		a.op("VFMADD231PS %d(SI), Z%d, Z%d", 64*i, 4+i, i)
	}
	a.op("ADDQ R8, SI")
	a.op("ADDQ R8, DI")
	a.op("ADDQ $4, BX")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	for i := range 4 {
		a.op("VMOVUPS Z%d, %d(DX)", i, 64*i)
	}
	a.ret()
}
