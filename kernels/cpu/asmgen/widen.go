package main

// widen splits rows of 32 words of two bfloat16 into a row of 32 floats of their even elements and one of their odd ones. The rows of
// src follow each other; those of even and odd lie two rows apart.
func (a *asm) widen() {
	a.fn("Widen", "even", "odd", "src", "words")
	a.loads("even", "DX", "odd", "BX", "src", "SI", "words", "CX")
	a.op("MOVL $0xFFFF0000, AX")
	a.spreadCount(7)
	l := a.fresh("loop")
	a.label(l)
	for i := range 2 {
		a.vec("VMOVUPS", mem{"SI", 64 * i}, 0)
		a.vec("VPSLLD", "$16", 0, 1)
		a.vec("VANDPS", 7, 0, 0)
		a.vec("VMOVUPS", 1, mem{"DX", 64 * i})
		a.vec("VMOVUPS", 0, mem{"BX", 64 * i})
	}
	a.op("ADDQ $128, SI")
	a.op("ADDQ $256, DX")
	a.op("ADDQ $256, BX")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}
