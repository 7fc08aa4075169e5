package main

import (
	"fmt"
	"strings"
)

// bf16Panels emits the micro-kernels over bfloat16. The widened product has no transposed form.
func (a *asm) bf16Panels() {
	a.panel(panelKernel{name: "PairsRows", rows: 12, masked: true, pairs: true, packed: true, reg: 'Z', width: 64, acc: 8})
	a.panel(panelKernel{name: "PairsCols", rows: 12, transposed: true, masked: true, pairs: true, reg: 'Z', width: 64, acc: 8})
	a.panel(panelKernel{name: "WidenedRows", rows: 12, masked: true, widen: true, packed: true, reg: 'Z', width: 64, acc: 8})
}

// upperHalf is the register that holds the mask of a pair's odd half.
const upperHalf = 7

// widenedPair adds two steps of the inner index: the even half of each pair of b, then the odd one.
func (a *asm) widenedPair(p panelKernel, m int) {
	const odd, free = 2, 4
	for h := range 2 {
		a.op("VPANDD Z%d, Z%d, Z%d", upperHalf, h, odd+h)
		a.op("VPSLLD $16, Z%d, Z%d", h, h)
	}
	a.multiply(p, m, free, 0)
	for h := range 2 {
		a.op("VMOVAPS Z%d, Z%d", odd+h, h)
	}
	a.multiply(p, m, free, 4)
}

// dotPairs emits VDPBF16PS, which Go's assembler does not know: acc += the dot products of the pairs of x and y. It is
// EVEX.512.F3.0F38.W0 52 /r (Intel SDM, volume 2C) between registers.
func (a *asm) dotPairs(acc, x, y int) {
	bit := func(v, n int) int { return ^v >> n & 1 }
	prefix := []int{
		0x62,
		bit(acc, 3)<<7 | bit(y, 4)<<6 | bit(y, 3)<<5 | bit(acc, 4)<<4 | 2, // R, X, B, R', map 0F38
		(^x&15)<<3 | 1<<2 | 2,       // W0, vvvv, prefix F3
		2<<5 | bit(x, 4)<<3,         // 512 bits, V'
		0x52,                        // opcode
		3<<6 | (acc&7)<<3 | (y & 7), // registers
	}
	text := make([]string, len(prefix))
	for i, b := range prefix {
		text[i] = fmt.Sprintf("BYTE $0x%02x", b)
	}
	a.op("%s // VDPBF16PS Z%d, Z%d, Z%d", strings.Join(text, "; "), y, x, acc)
}
