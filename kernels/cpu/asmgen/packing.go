package main

import "fmt"

// packing emits the loops that round to bfloat16 and rearrange matrices for the panel micro-kernels.
func (a *asm) packing() {
	a.roundRow()
	a.roundPair()
	a.pairRows()
	a.transpose()
	a.copyBlocks("CopyPanels", 2)
	a.copyBlocks("CopyGroups", 3)
}

// Registers that roundTo needs: the number 0x7fff, the number 1 and the quiet bit of a NaN.
const roundHalf, roundOne, roundQuiet = 29, 30, 31

func (a *asm) roundConstants() {
	for _, k := range []struct{ value, reg int }{{0x7fff, roundHalf}, {1, roundOne}, {0x400000, roundQuiet}} {
		a.op("MOVL $%#x, AX", k.value)
		a.op("VPBROADCASTD AX, Z%d", k.reg)
	}
}

// roundTo rounds the floats of register x, to nearest with ties to even, so that its upper halves are the result; a NaN becomes quiet. It uses
// register t and mask K5.
func (a *asm) roundTo(x, t int) {
	a.op("VCMPPS $3, Z%d, Z%d, K5", x, x)
	a.op("VPSRLD $16, Z%d, Z%d", x, t)
	a.op("VPANDD Z%d, Z%d, Z%d", roundOne, t, t)
	a.op("VPADDD Z%d, Z%d, Z%d", roundHalf, t, t)
	a.op("VPADDD Z%d, Z%d, Z%d", x, t, t)
	a.op("VPORD Z%d, Z%d, K5, Z%d", roundQuiet, x, t)
	a.op("VMOVAPS Z%d, Z%d", t, x)
}

// roundRow rounds blocks of 16 floats.
func (a *asm) roundRow() {
	a.fn("RoundRow", "dst", "src", "blocks")
	a.loads("dst", "DX", "src", "SI", "blocks", "CX")
	a.roundConstants()
	l := a.fresh("loop")
	a.label(l)
	a.op("VMOVUPS (SI), Z0")
	a.roundTo(0, 1)
	a.op("VPSRLD $16, Z0, Z0")
	a.op("VPMOVDW Z0, (DX)")
	a.op("ADDQ $64, SI")
	a.op("ADDQ $32, DX")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}

// interleave leaves in register lo the pairs of lo's and hi's upper halves.
func (a *asm) interleave(lo, hi int) {
	a.op("VPSRLD $16, Z%d, Z%d", lo, lo)
	a.op("VPSRLD $16, Z%d, Z%d", hi, hi)
	a.op("VPSLLD $16, Z%d, Z%d", hi, hi)
	a.op("VPORD Z%d, Z%d, Z%d", hi, lo, lo)
}

// roundPair rounds two rows of floats and interleaves them to panels of 32 pairs, which lie stride bytes apart.
func (a *asm) roundPair() {
	a.fn("RoundPair", "dst", "stride", "x", "y", "panels")
	a.loads("dst", "DX", "stride", "R8", "x", "SI", "y", "DI", "panels", "CX")
	a.roundConstants()
	l := a.fresh("loop")
	a.label(l)
	for i := range 2 {
		a.op("VMOVUPS %d(SI), Z0", 64*i)
		a.op("VMOVUPS %d(DI), Z1", 64*i)
		a.roundTo(0, 2)
		a.roundTo(1, 3)
		a.interleave(0, 1)
		a.op("VMOVUPS Z0, %d(DX)", 64*i)
	}
	a.op("ADDQ $128, SI")
	a.op("ADDQ $128, DI")
	a.op("ADDQ R8, DX")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}

// pairRows interleaves rows of bfloat16: pair i is of row x+i*step and row y+i*step, and its groups of 16 columns lie side by side at
// dst+i*stride. All distances are in bytes.
func (a *asm) pairRows() {
	a.fn("PairRows", "dst", "stride", "x", "y", "step", "groups", "pairs")
	a.loads("dst", "DX", "stride", "R8", "x", "SI", "y", "DI", "step", "R9", "groups", "R10", "pairs", "CX")
	pair, group := a.fresh("pair"), a.fresh("group")
	a.label(pair)
	a.op("XORQ AX, AX")
	a.op("MOVQ R10, R11")
	a.label(group)
	a.op("VPMOVZXWD (SI)(AX*1), Z0")
	a.op("VPMOVZXWD (DI)(AX*1), Z1")
	a.op("VPSLLD $16, Z1, Z1")
	a.op("VPORD Z1, Z0, Z0")
	a.op("VMOVUPS Z0, (DX)(AX*2)")
	a.op("ADDQ $32, AX")
	a.op("DECQ R11")
	a.op("JNZ %s", group)
	a.op("ADDQ R9, SI")
	a.op("ADDQ R9, DI")
	a.op("ADDQ R8, DX")
	a.op("DECQ CX")
	a.op("JNZ %s", pair)
	a.ret()
}

// transpose writes the 16 columns of 16 rows of 32-bit words as rows; strides are in bytes. It runs over groups of 16 columns, whose
// results follow each other. Register i holds row i at first.
func (a *asm) transpose() {
	a.fn("Transpose", "dst", "dstStride", "src", "srcStride", "groups")
	a.loads("dst", "DX", "dstStride", "R8", "src", "SI", "srcStride", "R9", "groups", "CX")
	a.op("LEAQ (R9)(R9*2), R10")
	a.op("LEAQ (R8)(R8*2), R11")
	l := a.fresh("loop")
	a.label(l)
	a.op("MOVQ SI, AX")
	for i := range 16 {
		a.op("VMOVUPS %s, Z%d", fourth("AX", "R9", "R10", i), i)
		if i%4 == 3 {
			a.op("LEAQ (AX)(R9*4), AX")
		}
	}
	for i := 0; i < 16; i += 2 { // pairs of words of two rows
		a.op("VUNPCKLPS Z%d, Z%d, Z%d", i+1, i, 16+i)
		a.op("VUNPCKHPS Z%d, Z%d, Z%d", i+1, i, 17+i)
	}
	for i := 0; i < 16; i += 4 { // columns 0 to 3 of each 128-bit lane, of four rows
		a.op("VUNPCKLPD Z%d, Z%d, Z%d", 18+i, 16+i, i)
		a.op("VUNPCKHPD Z%d, Z%d, Z%d", 18+i, 16+i, i+1)
		a.op("VUNPCKLPD Z%d, Z%d, Z%d", 19+i, 17+i, i+2)
		a.op("VUNPCKHPD Z%d, Z%d, Z%d", 19+i, 17+i, i+3)
	}
	for c := range 4 { // lanes 0 and 2, then 1 and 3, of rows 0-7 and 8-15
		a.op("VSHUFF64X2 $0x88, Z%d, Z%d, Z%d", 4+c, c, 16+c)
		a.op("VSHUFF64X2 $0xDD, Z%d, Z%d, Z%d", 4+c, c, 20+c)
		a.op("VSHUFF64X2 $0x88, Z%d, Z%d, Z%d", 12+c, 8+c, 24+c)
		a.op("VSHUFF64X2 $0xDD, Z%d, Z%d, Z%d", 12+c, 8+c, 28+c)
	}
	for c := range 4 {
		a.op("VSHUFF64X2 $0x88, Z%d, Z%d, Z%d", 24+c, 16+c, c)
		a.op("VSHUFF64X2 $0xDD, Z%d, Z%d, Z%d", 24+c, 16+c, 8+c)
		a.op("VSHUFF64X2 $0x88, Z%d, Z%d, Z%d", 28+c, 20+c, 4+c)
		a.op("VSHUFF64X2 $0xDD, Z%d, Z%d, Z%d", 28+c, 20+c, 12+c)
	}
	for i := range 16 {
		a.op("VMOVUPS Z%d, %s", i, fourth("DX", "R8", "R11", i))
		if i%4 == 3 {
			a.op("LEAQ (DX)(R8*4), DX")
		}
	}
	a.op("ADDQ $64, SI")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}

// fourth is row i mod 4 from a base, by its stride and three times that.
func fourth(base, stride, triple string, i int) string {
	switch i % 4 {
	case 0:
		return fmt.Sprintf("(%s)", base)
	case 3:
		return fmt.Sprintf("(%s)(%s*1)", base, triple)
	}
	return fmt.Sprintf("(%s)(%s*%d)", base, stride, i%4)
}

// copyBlocks copies blocks of a number of registers, which lie side by side at src and stride bytes apart at dst.
func (a *asm) copyBlocks(name string, registers int) {
	a.fn(name, "dst", "stride", "src", "blocks")
	a.loads("dst", "DX", "stride", "R8", "src", "SI", "blocks", "CX")
	l := a.fresh("loop")
	a.label(l)
	for i := range registers {
		a.op("VMOVUPS %d(SI), Z%d", 64*i, i)
	}
	for i := range registers {
		a.op("VMOVUPS Z%d, %d(DX)", i, 64*i)
	}
	a.op("ADDQ $%d, SI", 64*registers)
	a.op("ADDQ R8, DX")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}
