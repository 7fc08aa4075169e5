package main

import "fmt"

// wideRows is the most rows that a wide tile has: 6*4 accumulators of 32 registers.
const wideRows = 6

// generateWide is what attention of a few query rows spends its time in.
func generateWide(a *asm) string {
	a.header()
	a.wideTile("WideRows", false)
	a.wideTile("WideHalves", true)
	a.widenRow()
	a.fetchColumn()
	return a.out.String()
}

// wideTile computes a tile of 64 columns for up to wideRows rows: c[m,64] = (acc ? c : 0) + a[m,k] b[k,64], the chains of a panel. It reads
// b from end to end, which a pair of panels does not. See tile in gemm.go; n is 64. The elements of b are floats or bfloat16.
//
// Register use: SI a, DI b, DX c, R8 lda, R9 ldb, R10 ldc, R11 rows, R12 k, AX and BX walk rows 0 and 3 of a, R13 walks b. Z0-Z3 hold a row
// of b, Z4 to Z6 broadcasts, Z8 and up accumulate.
func (a *asm) wideTile(name string, halves bool) {
	a.fn(name, "t")
	a.load("t", "R15")
	for i, r := range []string{"SI", "DI", "DX", "R8", "R9", "R10", "R11", "R12"} {
		a.op("MOVQ %d(R15), %s", 8*i, r)
	}
	a.op("MOVQ 72(R15), R15")
	a.op("LEAQ (R8)(R8*2), BX")
	a.op("ADDQ SI, BX")
	for m := wideRows; m > 0; m-- {
		other := a.fresh("other")
		a.op("CMPQ R11, $%d", m)
		a.op("JNE %s", other)
		a.wideRowsOf(m, halves)
		a.label(other)
	}
	a.ret()
}

func (a *asm) wideRowsOf(m int, halves bool) {
	fresh, begin, loop := a.fresh("fresh"), a.fresh("begin"), a.fresh("loop")
	acc := func(i, h int) int { return 8 + 4*i + h }
	a.op("TESTQ R15, R15")
	a.op("JZ %s", fresh)
	a.op("MOVQ DX, AX")
	for i := range m {
		for h := range 4 {
			a.op("VMOVUPS %d(AX), Z%d", 64*h, acc(i, h))
		}
		a.op("ADDQ R10, AX")
	}
	a.op("JMP %s", begin)
	a.label(fresh)
	for i := range m {
		for h := range 4 {
			a.op("VPXORQ Z%[1]d, Z%[1]d, Z%[1]d", acc(i, h))
		}
	}
	a.label(begin)
	a.op("MOVQ SI, AX")
	a.op("MOVQ DI, R13")
	a.op("MOVQ R12, CX")
	a.label(loop)
	for h := range 4 {
		a.wideLoad(h, halves)
	}
	a.op("ADDQ R9, R13")
	for i := range m {
		base := []string{"AX", "BX"}[i/3]
		from := fmt.Sprintf("(%s)(R8*%d)", base, i%3)
		if i%3 == 0 {
			from = fmt.Sprintf("(%s)", base)
		}
		a.op("VBROADCASTSS %s, Z%d", from, 4+i%3)
		for h := range 4 {
			a.op("VFMADD231PS Z%d, Z%d, Z%d", h, 4+i%3, acc(i, h))
		}
	}
	a.op("ADDQ $4, AX")
	if m > 3 {
		a.op("ADDQ $4, BX")
	}
	a.op("DECQ CX")
	a.op("JNZ %s", loop)
	for i := range m {
		for h := range 4 {
			a.op("VMOVUPS Z%d, %d(DX)", acc(i, h), 64*h)
		}
		a.op("ADDQ R10, DX")
	}
	a.ret()
}

// wideLoad loads part h of a row of b, and asks for what lies wideAhead bytes on.
func (a *asm) wideLoad(h int, halves bool) {
	const wideAhead = 1024
	if !halves {
		a.op("PREFETCHT0 %d(R13)", wideAhead+64*h)
		a.op("VMOVUPS %d(R13), Z%d", 64*h, h)
		return
	}
	if h%2 == 0 {
		a.op("PREFETCHT0 %d(R13)", wideAhead+32*h)
	}
	a.op("VPMOVZXWD %d(R13), Z%d", 32*h, h)
	a.op("VPSLLD $16, Z%d, Z%d", h, h)
}

// widenRow turns groups of 16 bfloat16 into floats.
func (a *asm) widenRow() {
	a.fn("WidenRow", "dst", "src", "blocks")
	a.loads("dst", "DX", "src", "SI", "blocks", "CX")
	l := a.fresh("loop")
	a.label(l)
	a.op("VPMOVZXWD (SI), Z0")
	a.op("VPSLLD $16, Z0, Z0")
	a.op("VMOVUPS Z0, (DX)")
	a.op("ADDQ $32, SI")
	a.op("ADDQ $64, DX")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}

// fetchColumn asks for a line of each of n rows, stride bytes apart.
func (a *asm) fetchColumn() {
	a.fn("FetchColumn", "from", "stride", "rows")
	a.loads("from", "DI", "stride", "SI", "rows", "CX")
	l := a.fresh("loop")
	a.label(l)
	a.op("PREFETCHT0 (DI)")
	a.op("ADDQ SI, DI")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}
