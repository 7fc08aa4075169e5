package main

// rotate turns pairs of halves of a head by angles; see rotate in portable_attention.go, which multiplies and adds in float64. It takes blocks
// of 8 pairs.
func (a *asm) rotate() {
	a.fn("Rotate", "out", "x", "cos", "sin", "half", "blocks", "sign:f", "factor:f")
	a.loads("out", "DX", "x", "SI", "cos", "R8", "sin", "R9", "half", "R10", "blocks", "CX")
	a.op("VBROADCASTSS %s, Y14", a.args["sign"])
	a.op("VBROADCASTSS %s, Y15", a.args["factor"])
	l := a.fresh("loop")
	a.label(l)
	a.op("VMULPS (R8), Y15, Y2") // c
	a.op("VMULPS (R9), Y14, Y3")
	a.op("VMULPS Y15, Y3, Y3") // s
	a.op("VMOVUPS (SI), Y0")
	a.op("VMOVUPS (SI)(R10*4), Y1")
	a.rotation()
	a.op("VMOVUPS Y0, (DX)")
	a.op("VMOVUPS Y1, (DX)(R10*4)")
	for _, p := range []string{"SI", "DX", "R8", "R9"} {
		a.op("ADDQ $32, %s", p)
	}
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}

// rotation turns the pairs in Y0 and Y1 by the angles whose cosines and sines are in Y2 and Y3.
func (a *asm) rotation() {
	a.op("VMULPS Y3, Y1, Y4")
	a.op("VMULPS Y3, Y0, Y5")
	for i := range 6 {
		a.op("VCVTPS2PD Y%d, Z%d", i, 16+i)
	}
	a.op("VFMSUB213PD Z20, Z18, Z16") // x c - y s
	a.op("VFMADD213PD Z21, Z18, Z17") // y c + x s
	a.op("VCVTPD2PS Z16, Y0")
	a.op("VCVTPD2PS Z17, Y1")
}
