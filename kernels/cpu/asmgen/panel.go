package main

import "fmt"

// panelKernel describes one micro-kernel: c[m,n] = (acc ? c : 0) + a b for a panel of two registers of columns. See tile in gemm.go.
type panelKernel struct {
	name       string
	rows       int  // rows of a register tile
	transposed bool // a steps along rows of memory with the inner index
	masked     bool // n may be less than the panel
	pairs      bool // a and b hold pairs of bfloat16
	widen      bool // b holds pairs of bfloat16, a float32
	packed     bool // b is packed: its rows lie packedStep bytes apart, and whole tiles fetch what follows it
	reg        byte // 'Z' or 'Y'
	width      int  // bytes of a register
	acc        int  // first accumulator
	maskLo     int  // AVX2: registers of the column masks
}

// panels emits the micro-kernels. Twelve rows of two Z registers use 24 of 32 registers, six rows of two Y registers 12 of 16, and
// four when two more hold masks.
func (a *asm) panels() {
	for _, transposed := range []bool{false, true} {
		kind := "Rows"
		if transposed {
			kind = "Cols"
		}
		if a.wide {
			a.panel(panelKernel{name: "Panel" + kind, rows: 12, transposed: transposed, masked: true, reg: 'Z', width: 64, acc: 8})
			continue
		}
		a.panel(panelKernel{name: "Panel" + kind, rows: 6, transposed: transposed, reg: 'Y', width: 32, acc: 4})
		a.panel(panelKernel{name: "Masked" + kind, rows: 4, transposed: transposed, masked: true, reg: 'Y', width: 32, acc: 4, maskLo: 14})
	}
	a.widen()
}

// packedStep is the bytes of a row of a packed panel.
const packedStep = 128

// Register use: SI a, DI b, DX c, R8 lda, R9 ldb, or what to fetch next if b is packed, R10 ldc, R11 rows left, R12 k, R13 walks b, AX BX CX R14 walk rows 0, 3, 6, 9 of a
// (AX alone when transposed), R15 counts.
func (a *asm) panel(p panelKernel) {
	a.fn(p.name, "t")
	a.load("t", "R15")
	for i, r := range []string{"SI", "DI", "DX", "R8", "R9", "R10", "R11", "R12"} {
		a.op("MOVQ %d(R15), %s", 8*i, r)
	}
	if p.packed {
		a.op("MOVQ 80(R15), R9")
	}
	a.columnMasks(p)
	if p.widen {
		a.op("MOVL $0xFFFF0000, AX")
		a.op("VPBROADCASTD AX, Z%d", upperHalf)
	}
	tiles, rest := a.fresh("tiles"), a.fresh("rest")
	a.label(tiles)
	a.op("CMPQ R11, $%d", p.rows)
	a.op("JLT %s", rest)
	a.tile(p, p.rows)
	a.nextTile(p)
	a.op("SUBQ $%d, R11", p.rows)
	a.op("JMP %s", tiles)
	a.label(rest)
	for m := p.rows - 1; m > 0; m-- {
		other := a.fresh("other")
		a.op("CMPQ R11, $%d", m)
		a.op("JNE %s", other)
		a.tile(p, m)
		a.ret()
		a.label(other)
	}
	a.ret()
}

// columnMasks turns n into masks of the panel's two registers.
func (a *asm) columnMasks(p panelKernel) {
	if !p.masked {
		return
	}
	a.op("MOVQ 64(R15), CX")
	if p.reg == 'Z' {
		a.op("MOVL $-1, AX")
		a.op("BZHIL CX, AX, AX")
		a.op("KMOVW AX, K1")
		a.op("SHRL $16, AX")
		a.op("KMOVW AX, K2")
		return
	}
	a.op("MOVQ $16, AX")
	a.op("SUBQ CX, AX")
	a.op("LEAQ masks<>(SB), BX")
	a.op("VMOVUPS (BX)(AX*4), Y%d", p.maskLo)
	a.op("VMOVUPS 32(BX)(AX*4), Y%d", p.maskLo+1)
}

// nextTile moves a on by a whole tile; c has moved already.
func (a *asm) nextTile(p panelKernel) {
	if p.transposed {
		a.op("ADDQ $%d, SI", 4*p.rows)
		return
	}
	a.op("IMUL3Q $%d, R8, AX", p.rows)
	a.op("ADDQ AX, SI")
}

// tile computes m rows and leaves DX past the last of them.
func (a *asm) tile(p panelKernel, m int) {
	fresh, begin, loop := a.fresh("fresh"), a.fresh("begin"), a.fresh("loop")
	if p.reg == 'Z' && m == p.rows {
		a.prefetchNext(p)
	}
	a.load("t", "R15")
	a.op("MOVQ 72(R15), R15")
	a.op("TESTQ R15, R15")
	a.op("JZ %s", fresh)
	a.op("MOVQ DX, AX")
	for i := range m {
		for h := range 2 {
			a.loadColumns(p, fmt.Sprintf("%d(AX)", h*p.width), h, p.acc+2*i+h)
		}
		if i < m-1 {
			a.op("ADDQ R10, AX")
		}
	}
	a.op("JMP %s", begin)
	a.label(fresh)
	for i := range 2 * m {
		a.clearRegister(p, p.acc+i)
	}
	a.label(begin)
	bases := a.rowPointers(p, m)
	a.op("MOVQ DI, R13")
	a.op("MOVQ R12, R15")
	a.label(loop)
	a.loadColumns(p, "(R13)", 0, 0)
	a.loadColumns(p, fmt.Sprintf("%d(R13)", p.width), 1, 1)
	a.nextRow(p, m)
	step := 4
	if p.widen {
		a.widenedPair(p, m)
		step = 8
	} else {
		a.multiply(p, m, 2, 0)
	}
	for _, b := range bases {
		if p.transposed {
			a.op("ADDQ R8, %s", b)
		} else {
			a.op("ADDQ $%d, %s", step, b)
		}
	}
	a.op("DECQ R15")
	a.op("JNZ %s", loop)
	for i := range m {
		for h := range 2 {
			a.storeColumns(p, p.acc+2*i+h, h, fmt.Sprintf("%d(DX)", h*p.width))
		}
		a.op("ADDQ R10, DX")
	}
}

// nextRow moves on by a row of b. A whole tile asks for a line of what follows b in memory: rows of a are few in decoding, so that panels
// come from memory all the time, and the second-level cache gets the next ones while this one is used.
func (a *asm) nextRow(p panelKernel, m int) {
	if !p.packed {
		a.op("ADDQ R9, R13")
		return
	}
	a.op("ADDQ $%d, R13", packedStep)
	if m == p.rows {
		a.op("PREFETCHT0 (R9)")
		a.op("ADDQ $64, R9")
	}
}

// prefetchNext asks for the part of c that comes next, so that it arrives while this tile is computed: the tile below, or, below the
// last whole one, the first tile of the panel to the right. A prefetch of what is not there is void.
func (a *asm) prefetchNext(p panelKernel) {
	below := a.fresh("below")
	a.op("LEAQ (R10)(R10*2), AX")
	a.op("LEAQ (DX)(AX*4), AX")
	a.op("CMPQ R11, $%d", 2*p.rows)
	a.op("JGE %s", below)
	a.load("t", "R15")
	a.op("MOVQ 16(R15), AX")
	a.op("ADDQ $%d, AX", 2*p.width)
	a.label(below)
	for i := range p.rows {
		for h := range 2 {
			a.op("PREFETCHT0 %d(AX)", h*p.width)
		}
		if i < p.rows-1 {
			a.op("ADDQ R10, AX")
		}
	}
}

var rowBases = []string{"AX", "BX", "CX", "R14"}

// rowPointers sets the registers that walk along a: one for every three rows, which index registers scaled by 0, 1, 2 reach.
func (a *asm) rowPointers(p panelKernel, m int) []string {
	a.op("MOVQ SI, AX")
	if p.transposed {
		return rowBases[:1]
	}
	n := (m + 2) / 3
	if n > 1 {
		a.op("LEAQ (R8)(R8*2), R15")
	}
	for i := 1; i < n; i++ {
		a.op("LEAQ (%s)(R15*1), %s", rowBases[i-1], rowBases[i])
	}
	return rowBases[:n]
}

// multiply adds one step of the inner index to m rows. Broadcasts rotate through the registers from free on. ahead is how many bytes of a
// the step lies ahead of the row pointers.
func (a *asm) multiply(p panelKernel, m, free, ahead int) {
	count := p.acc - free
	if p.widen {
		count = upperHalf - free
	}
	for i := range m {
		b := free + i%count
		a.op("VBROADCASTSS %s, %c%d", p.element(i, ahead), p.reg, b)
		for h := range 2 {
			if p.pairs {
				a.dotPairs(p.acc+2*i+h, h, b)
			} else {
				a.op("VFMADD231PS %c%d, %c%d, %c%d", p.reg, h, p.reg, b, p.reg, p.acc+2*i+h)
			}
		}
	}
}

// element is the operand of row i of a.
func (p panelKernel) element(i, ahead int) string {
	if p.transposed {
		return fmt.Sprintf("%d(AX)", 4*i)
	}
	text := ""
	if ahead > 0 {
		text = fmt.Sprint(ahead)
	}
	if i%3 == 0 {
		return fmt.Sprintf("%s(%s)", text, rowBases[i/3])
	}
	return fmt.Sprintf("%s(%s)(R8*%d)", text, rowBases[i/3], i%3)
}

func (a *asm) clearRegister(p panelKernel, r int) {
	if p.reg == 'Z' {
		a.op("VPXORQ Z%d, Z%d, Z%d", r, r, r)
		return
	}
	a.op("VXORPS Y%d, Y%d, Y%d", r, r, r)
}

func (a *asm) loadColumns(p panelKernel, from string, half, r int) {
	switch {
	case !p.masked:
		a.op("VMOVUPS %s, %c%d", from, p.reg, r)
	case p.reg == 'Z':
		a.op("VMOVUPS.Z %s, K%d, Z%d", from, half+1, r)
	default:
		a.op("VMASKMOVPS %s, Y%d, Y%d", from, p.maskLo+half, r)
	}
}

func (a *asm) storeColumns(p panelKernel, r, half int, to string) {
	switch {
	case !p.masked:
		a.op("VMOVUPS %c%d, %s", p.reg, r, to)
	case p.reg == 'Z':
		a.op("VMOVUPS Z%d, K%d, %s", r, half+1, to)
	default:
		a.op("VMASKMOVPS Y%d, Y%d, %s", r, p.maskLo+half, to)
	}
}
