package main

import "fmt"

// gemvKernel describes a product of one row with whole packed panels: c[32*panels] = (acc ? c : 0) + a b. See gemv in gemv.go.
type gemvKernel struct {
	name  string
	pairs bool // a and b hold pairs of bfloat16
	widen bool // b holds pairs of bfloat16, a float32
}

// generateGemv is what decoding a single sequence spends its time in.
func generateGemv(a *asm) string {
	a.header()
	a.gemv(gemvKernel{name: "Gemv"})
	a.gemv(gemvKernel{name: "GemvPairs", pairs: true})
	a.gemv(gemvKernel{name: "GemvWidened", widen: true})
	a.pause()
	return a.out.String()
}

// gemvStreams is the number of panels in flight: each has two chains, and a fused multiply-add takes four cycles.
const gemvStreams = 2

// Register use: SI a, DI b, DX c, R8 inner steps, R9 panels left, R10 bytes between panels, R11 acc; AX walks a, R12 and R13 walk b. Z0-Z3
// accumulate.
func (a *asm) gemv(g gemvKernel) {
	a.fn(g.name, "v")
	a.load("v", "R15")
	for i, r := range []string{"SI", "DI", "DX", "R8", "R9", "R10", "R11"} {
		a.op("MOVQ %d(R15), %s", 8*i, r)
	}
	if g.widen {
		a.op("MOVL $0xFFFF0000, AX")
		a.op("VPBROADCASTD AX, Z%d", upperHalf)
	}
	single, done := a.fresh("single"), a.fresh("done")
	group := a.fresh("group")
	a.label(group)
	a.op("CMPQ R9, $%d", gemvStreams)
	a.op("JLT %s", single)
	a.gemvGroup(g, gemvStreams)
	a.op("JMP %s", group)
	a.label(single)
	a.op("TESTQ R9, R9")
	a.op("JZ %s", done)
	a.gemvGroup(g, 1)
	a.label(done)
	a.ret()
}

// gemvGroup computes n panels and moves on.
func (a *asm) gemvGroup(g gemvKernel, n int) {
	fresh, begin, loop := a.fresh("fresh"), a.fresh("begin"), a.fresh("loop")
	a.op("TESTQ R11, R11")
	a.op("JZ %s", fresh)
	for i := range 2 * n {
		a.op("VMOVUPS %d(DX), Z%d", 64*i, i)
	}
	a.op("JMP %s", begin)
	a.label(fresh)
	for i := range 2 * n {
		a.op("VPXORQ Z%d, Z%d, Z%d", i, i, i)
	}
	a.label(begin)
	a.op("MOVQ SI, AX")
	a.op("MOVQ DI, R12")
	a.op("LEAQ (DI)(R10*1), R13")
	a.op("MOVQ R8, CX")
	a.label(loop)
	for i := range 2 * n {
		a.gemvStep(g, i)
	}
	step := 4
	if g.widen {
		step = 8
	}
	a.op("ADDQ $%d, AX", step)
	for _, r := range []string{"R12", "R13"}[:n] {
		a.op("ADDQ $128, %s", r)
	}
	a.op("DECQ CX")
	a.op("JNZ %s", loop)
	for i := range 2 * n {
		a.op("VMOVUPS Z%d, %d(DX)", i, 64*i)
	}
	a.op("ADDQ $%d, DX", 128*n)
	a.op("SUBQ $%d, R9", n)
	for range n {
		a.op("ADDQ R10, DI")
	}
}

// gemvStep adds a step of the inner index, or a pair of them, to accumulator i.
func (a *asm) gemvStep(g gemvKernel, i int) {
	const x, odd = 4, 5 // Z4, Z5: elements of a
	from := fmt.Sprintf("%d(%s)", i%2*64, []string{"R12", "R13"}[i/2])
	if i == 0 {
		a.op("VBROADCASTSS (AX), Z%d", x)
		if g.widen {
			a.op("VBROADCASTSS 4(AX), Z%d", odd)
		}
	}
	w := 8 + i
	switch {
	case g.pairs:
		a.op("VMOVUPS %s, Z%d", from, w)
		a.dotPairs(i, w, x)
	case g.widen:
		a.op("VMOVUPS %s, Z%d", from, w)
		a.op("VPSLLD $16, Z%d, Z%d", w, 12+i)
		a.op("VPANDD Z%d, Z%d, Z%d", upperHalf, w, w)
		a.op("VFMADD231PS Z%d, Z%d, Z%d", x, 12+i, i)
		a.op("VFMADD231PS Z%d, Z%d, Z%d", odd, w, i)
	default:
		a.op("VFMADD231PS %s, Z%d, Z%d", from, x, i)
	}
}

// pause waits n times the processor's spin-loop hint.
func (a *asm) pause() {
	a.line("")
	a.line("TEXT ·pause(SB), NOSPLIT, $0-8")
	a.op("MOVQ n+0(FP), CX")
	a.label("again")
	a.op("PAUSE")
	a.op("DECQ CX")
	a.op("JNZ again")
	a.op("RET")
}
