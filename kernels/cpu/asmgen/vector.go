package main

import "fmt"

// vectors emits the loops of row work. Every function takes its number of groups of 16 elements as blocks >= 1.
func (a *asm) vectors() {
	a.max()
	a.expSum()
	a.probsGrad()
	a.dot()
	a.triple()
	a.scaleWeight()
	a.normGrad()
	a.normWeightGrad()
	a.scale()
	a.accumulate()
	a.swiglu()
	a.swigluGrad()
	a.softmaxRows()
	a.probRows()
	a.adamw()
}

// loop emits body once a group, with pointers moving on by 64 bytes.
func (a *asm) loop(body func(), pointers ...string) {
	l := a.fresh("loop")
	a.label(l)
	body()
	for _, p := range pointers {
		a.op("ADDQ $64, %s", p)
	}
	a.op("DECQ CX")
	a.op("JNZ %s", l)
}

func at(base string) mem { return mem{base: base} }

// exp replaces vector x by e^x, 0 below expLo, and uses n, p and m. The caller has bounded x from above. See exp in portable.go.
func (a *asm) exp(x, n, p, m int) {
	const notLess = "$5"
	if a.wide {
		a.op("VCMPPS %s, %s, Z%d, K5", notLess, c("expLo").at(0), x)
	} else {
		a.vec("VCMPPS", notLess, c("expLo"), x, m)
	}
	a.vec("VMULPS", c("log2e"), x, n)
	if a.wide {
		a.op("VRNDSCALEPS $8, Z%d, Z%d", n, n)
	} else {
		a.vec("VROUNDPS", "$8", n, n)
	}
	a.vec("VFNMADD231PS", c("ln2Hi"), n, x)
	a.vec("VFNMADD231PS", c("ln2Lo"), n, x)
	a.vec("VMOVUPS", c("expC0"), p)
	for _, k := range []string{"expC1", "expC2", "expC3", "expC4", "expC5", "one", "one"} {
		a.vec("VFMADD213PS", c(k), x, p)
	}
	a.vec("VCVTPS2DQ", n, n)
	a.vec("VPSLLD", "$23", n, n)
	a.vec("VPADDD", n, p, p)
	if a.wide {
		a.op("VMOVAPS.Z Z%d, K5, Z%d", p, x)
		return
	}
	a.vec("VANDPS", m, p, x)
}

func (a *asm) max() {
	a.fn("Max", "x", "blocks", "acc")
	a.load("x", "SI")
	a.load("blocks", "CX")
	a.load("acc", "DX")
	a.vec("VMOVUPS", at("DX"), 0)
	a.loop(func() { a.vec("VMAXPS", at("SI"), 0, 0) }, "SI")
	a.vec("VMOVUPS", 0, at("DX"))
	a.ret()
}

func (a *asm) expSum() {
	a.fn("ExpSum", "x", "blocks", "m:f", "sum", "weighted")
	a.load("x", "SI")
	a.load("blocks", "CX")
	a.broadcast(a.args["m"], 7)
	a.load("sum", "DX")
	a.load("weighted", "DI")
	a.vec("VMOVUPS", at("DX"), 5)
	a.vec("VMOVUPS", at("DI"), 6)
	a.loop(func() {
		a.vec("VMOVUPS", at("SI"), 0)
		a.vec("VSUBPS", 7, 0, 0)
		a.vec("VMOVAPS", 0, 4)
		a.exp(0, 1, 2, 3)
		a.vec("VADDPS", 0, 5, 5)
		a.vec("VFMADD231PS", 4, 0, 6)
	}, "SI")
	a.vec("VMOVUPS", 5, at("DX"))
	a.vec("VMOVUPS", 6, at("DI"))
	a.ret()
}

func (a *asm) probsGrad() {
	a.fn("ProbsGrad", "x", "blocks", "lse:f", "coef:f")
	a.load("x", "SI")
	a.load("blocks", "CX")
	a.broadcast(a.args["lse"], 7)
	a.broadcast(a.args["coef"], 6)
	a.vec("VXORPS", c("negative"), 6, 6)
	a.loop(func() {
		a.vec("VMOVUPS", at("SI"), 0)
		a.vec("VSUBPS", 7, 0, 0)
		a.exp(0, 1, 2, 3)
		a.vec("VMULPS", 6, 0, 0)
		a.vec("VMOVUPS", 0, at("SI"))
	}, "SI")
	a.ret()
}

func (a *asm) dot() {
	a.fn("Dot", "x", "y", "blocks", "acc")
	a.load("x", "SI")
	a.load("y", "DI")
	a.load("blocks", "CX")
	a.load("acc", "DX")
	a.vec("VMOVUPS", at("DX"), 0)
	a.loop(func() {
		a.vec("VMOVUPS", at("SI"), 1)
		a.vec("VFMADD231PS", at("DI"), 1, 0)
	}, "SI", "DI")
	a.vec("VMOVUPS", 0, at("DX"))
	a.ret()
}

func (a *asm) triple() {
	a.fn("Triple", "x", "y", "z", "blocks", "acc")
	a.load("x", "SI")
	a.load("y", "DI")
	a.load("z", "BX")
	a.load("blocks", "CX")
	a.load("acc", "DX")
	a.vec("VMOVUPS", at("DX"), 0)
	a.loop(func() {
		a.vec("VMOVUPS", at("SI"), 1)
		a.vec("VMULPS", at("DI"), 1, 1)
		a.vec("VFMADD231PS", at("BX"), 1, 0)
	}, "SI", "DI", "BX")
	a.vec("VMOVUPS", 0, at("DX"))
	a.ret()
}

func (a *asm) scaleWeight() {
	a.fn("ScaleWeight", "y", "x", "w", "blocks", "r:f")
	a.load("y", "DX")
	a.load("x", "SI")
	a.load("w", "DI")
	a.load("blocks", "CX")
	a.broadcast(a.args["r"], 7)
	a.loop(func() {
		a.vec("VMULPS", at("SI"), 7, 0)
		a.vec("VMULPS", at("DI"), 0, 0)
		a.vec("VMOVUPS", 0, at("DX"))
	}, "DX", "SI", "DI")
	a.ret()
}

func (a *asm) normGrad() {
	a.fn("NormGrad", "dx", "dy", "x", "w", "blocks", "r:f", "c:f")
	a.load("dx", "DX")
	a.load("dy", "SI")
	a.load("x", "DI")
	a.load("w", "BX")
	a.load("blocks", "CX")
	a.broadcast(a.args["r"], 7)
	a.broadcast(a.args["c"], 6)
	a.loop(func() {
		a.vec("VMOVUPS", at("SI"), 0)
		a.vec("VMULPS", at("BX"), 0, 0)
		a.vec("VFMADD213PS", at("DX"), 7, 0)
		a.vec("VFNMADD231PS", at("DI"), 6, 0)
		a.vec("VMOVUPS", 0, at("DX"))
	}, "DX", "SI", "DI", "BX")
	a.ret()
}

func (a *asm) normWeightGrad() {
	a.fn("NormWeightGrad", "dw", "dy", "x", "blocks", "r:f")
	a.load("dw", "DX")
	a.load("dy", "SI")
	a.load("x", "DI")
	a.load("blocks", "CX")
	a.broadcast(a.args["r"], 7)
	a.loop(func() {
		a.vec("VMULPS", at("DI"), 7, 0)
		a.vec("VMOVUPS", at("SI"), 1)
		a.vec("VFMADD213PS", at("DX"), 1, 0)
		a.vec("VMOVUPS", 0, at("DX"))
	}, "DX", "SI", "DI")
	a.ret()
}

func (a *asm) scale() {
	a.fn("Scale", "x", "blocks", "f:f")
	a.load("x", "SI")
	a.load("blocks", "CX")
	a.broadcast(a.args["f"], 7)
	a.loop(func() {
		a.vec("VMULPS", at("SI"), 7, 0)
		a.vec("VMOVUPS", 0, at("SI"))
	}, "SI")
	a.ret()
}

func (a *asm) accumulate() {
	a.fn("Accumulate", "dst", "src", "blocks")
	a.load("dst", "DX")
	a.load("src", "SI")
	a.load("blocks", "CX")
	a.loop(func() {
		a.vec("VMOVUPS", at("DX"), 0)
		a.vec("VADDPS", at("SI"), 0, 0)
		a.vec("VMOVUPS", 0, at("DX"))
	}, "DX", "SI")
	a.ret()
}

// sigmoidDenominator sets vector 0 to 1+e^-g for g in vector 4.
func (a *asm) sigmoidDenominator() {
	a.vec("VXORPS", c("negative"), 4, 0)
	a.vec("VMINPS", c("expHi"), 0, 0)
	a.exp(0, 1, 2, 3)
	a.vec("VADDPS", c("one"), 0, 0)
}

func (a *asm) swiglu() {
	a.fn("Swiglu", "y", "gate", "up", "blocks")
	a.load("y", "DX")
	a.load("gate", "SI")
	a.load("up", "DI")
	a.load("blocks", "CX")
	a.loop(func() {
		a.vec("VMOVUPS", at("SI"), 4)
		a.sigmoidDenominator()
		a.vec("VDIVPS", 0, 4, 0)
		a.vec("VMULPS", at("DI"), 0, 0)
		a.vec("VMOVUPS", 0, at("DX"))
	}, "DX", "SI", "DI")
	a.ret()
}

// With s = 1/(1+e^-g): du = dy (g s), dg = (dy u) ((g s)(1-s) + s).
func (a *asm) swigluGrad() {
	a.fn("SwigluGrad", "dg", "du", "dy", "gate", "up", "blocks")
	a.load("dg", "DX")
	a.load("du", "BX")
	a.load("dy", "AX")
	a.load("gate", "SI")
	a.load("up", "DI")
	a.load("blocks", "CX")
	a.loop(func() {
		a.vec("VMOVUPS", at("SI"), 4)
		a.sigmoidDenominator()
		a.vec("VMOVUPS", c("one"), 1)
		a.vec("VDIVPS", 0, 1, 0)
		a.vec("VMULPS", 0, 4, 4)
		a.vec("VSUBPS", 0, 1, 1)
		a.vec("VFMADD213PS", 0, 4, 1)
		a.vec("VMOVUPS", at("AX"), 2)
		a.vec("VMULPS", 4, 2, 4)
		a.vec("VMULPS", at("DI"), 2, 2)
		a.vec("VMULPS", 1, 2, 2)
		a.vec("VMOVUPS", 4, at("BX"))
		a.vec("VMOVUPS", 2, at("DX"))
	}, "DX", "BX", "AX", "SI", "DI")
	a.ret()
}

// visible loads group i of a row of 64 into vector v; where the position is not below the count in vector n it takes the fill instead.
// It uses vector t.
func (a *asm) visible(m mem, fill string, i, n, v, t int) {
	group := mem{base: "iota<>", offset: 64 * i}
	if a.wide {
		a.op("VPCMPGTD %s, Z%d, K1", group.at(0), n)
		a.vec("VMOVUPS", c(fill), v)
		a.op("VMOVUPS %s, K1, Z%d", m.at(0), v)
		return
	}
	a.vec("VPCMPGTD", group, n, t)
	a.vec("VMOVUPS", c(fill), v)
	a.vec("VBLENDVPS", t, m, v, v)
}

// fold reduces vector v by halves with an instruction, leaving the result in element 0 of X<v>; it uses X<t>.
func (a *asm) fold(name string, v, t int) {
	if a.wide {
		a.op("VEXTRACTF64X4 $1, Z%d, Y%d", v, t)
		a.op("%s Y%d, Y%d, Y%d", name, t, v, v)
	} else {
		a.op("%s Y%d, Y%d, Y%d", name, v+8, v, v)
	}
	a.op("VEXTRACTF128 $1, Y%d, X%d", v, t)
	a.op("%s X%d, X%d, X%d", name, t, v, v)
	for _, shuffle := range []string{"$0x4E", "$0xB1"} {
		a.op("VPERMILPS %s, X%d, X%d", shuffle, v, t)
		a.op("%s X%d, X%d, X%d", name, t, v, v)
	}
}

// spread copies element 0 of X<v> to all of vector v.
func (a *asm) spread(v int) {
	if a.wide {
		a.op("VBROADCASTSS X%d, Z%d", v, v)
		return
	}
	a.op("VBROADCASTSS X%d, Y%d", v, v+8)
	a.op("VBROADCASTSS X%d, Y%d", v, v)
}

// softmaxRows: see portable_attention.go. Invalid scores become -Inf in a first pass, so their exponentials are exact zeros in the second.
func (a *asm) softmaxRows() {
	a.fn("SoftmaxRows", "s", "rows", "n", "m", "l", "alpha")
	a.loads("s", "SI", "rows", "CX", "n", "R8", "m", "R9", "l", "R10", "alpha", "R11")
	row, partial, seen := a.fresh("row"), a.fresh("partial"), a.fresh("seen")
	a.label(row)
	a.broadcast("(R9)", 4)
	a.vec("VMOVAPS", 4, 0)
	a.op("MOVL (R8), AX")
	a.op("CMPL AX, $64")
	a.op("JLT %s", partial)
	for i := range 4 {
		a.vec("VMAXPS", mem{"SI", 64 * i}, 0, 0)
	}
	a.op("JMP %s", seen)
	a.label(partial)
	a.spreadCount(7)
	for i := range 4 {
		a.visible(mem{"SI", 64 * i}, "lowest", i, 7, 1, 2)
		a.vec("VMOVUPS", 1, mem{"SI", 64 * i})
		a.vec("VMAXPS", 1, 0, 0)
	}
	a.label(seen)
	a.fold("VMAXPS", 0, 1)
	a.op("VMOVSS X0, (R9)")
	a.spread(0)
	a.vec("VSUBPS", 0, 4, 4)
	a.vec("VMOVAPS", 0, 7)
	a.exp(4, 1, 2, 3)
	a.op("VMOVSS X4, (R11)")
	a.zero(6)
	for i := range 4 {
		a.vec("VMOVUPS", mem{"SI", 64 * i}, 0)
		a.vec("VSUBPS", 7, 0, 0)
		a.exp(0, 1, 2, 3)
		a.vec("VMOVUPS", 0, mem{"SI", 64 * i})
		a.vec("VADDPS", 0, 6, 6)
	}
	a.fold("VADDPS", 6, 1)
	a.op("VFMADD231SS (R10), X4, X6")
	a.op("VMOVSS X6, (R10)")
	a.op("ADDQ $256, SI")
	for _, r := range []string{"R8", "R9", "R10", "R11"} {
		a.op("ADDQ $4, %s", r)
	}
	a.op("DECQ CX")
	a.op("JNZ %s", row)
	a.ret()
}

// loads moves arguments to registers, given in pairs.
func (a *asm) loads(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		a.load(pairs[i], pairs[i+1])
	}
}

// spreadCount copies AX to all elements of vector v.
func (a *asm) spreadCount(v int) {
	if a.wide {
		a.op("VPBROADCASTD AX, Z%d", v)
		return
	}
	a.op("VMOVD AX, X%d", v)
	a.op("VPBROADCASTD X%d, Y%d", v, v+8)
	a.op("VPBROADCASTD X%d, Y%d", v, v)
}

// probRows: see portable_attention.go.
func (a *asm) probRows() {
	a.fn("ProbRows", "s", "dp", "rows", "n", "lse", "d")
	a.loads("s", "SI", "dp", "DI", "rows", "CX", "n", "R8", "lse", "R9", "d", "R10")
	row, partial, done := a.fresh("row"), a.fresh("partial"), a.fresh("done")
	step := func(i int) {
		a.vec("VSUBPS", 5, 0, 0)
		a.exp(0, 1, 2, 3)
		a.vec("VMOVUPS", 0, mem{"SI", 64 * i})
		a.vec("VSUBPS", 6, 4, 4)
		a.vec("VMULPS", 0, 4, 4)
		a.vec("VMOVUPS", 4, mem{"DI", 64 * i})
	}
	a.label(row)
	a.broadcast("(R9)", 5)
	a.broadcast("(R10)", 6)
	a.op("MOVL (R8), AX")
	a.op("CMPL AX, $64")
	a.op("JLT %s", partial)
	for i := range 4 {
		a.vec("VMOVUPS", mem{"SI", 64 * i}, 0)
		a.vec("VMOVUPS", mem{"DI", 64 * i}, 4)
		step(i)
	}
	a.op("JMP %s", done)
	a.label(partial)
	a.spreadCount(7)
	for i := range 4 {
		a.visible(mem{"SI", 64 * i}, "lowest", i, 7, 0, 1)
		a.visible(mem{"DI", 64 * i}, "zeros", i, 7, 4, 1)
		step(i)
	}
	a.label(done)
	a.op("ADDQ $256, SI")
	a.op("ADDQ $256, DI")
	for _, r := range []string{"R8", "R9", "R10"} {
		a.op("ADDQ $4, %s", r)
	}
	a.op("DECQ CX")
	a.op("JNZ %s", row)
	a.ret()
}

// adamw: see portable_attention.go; the constants lie in the order of adamwConstants.
func (a *asm) adamw() {
	a.fn("AdamW", "w", "m", "v", "grad", "blocks", "c")
	a.loads("w", "DX", "m", "SI", "v", "DI", "grad", "BX", "blocks", "CX", "c", "R8")
	constant := func(i, v int) { a.broadcast(fmt.Sprintf("%d(R8)", 4*i), v) }
	a.loop(func() {
		constant(0, 7)
		a.vec("VMULPS", at("BX"), 7, 0) // x
		a.vec("VMOVUPS", at("SI"), 1)
		a.vec("VSUBPS", 1, 0, 2)
		constant(1, 7)
		a.vec("VFMADD231PS", 7, 2, 1) // m
		a.vec("VMOVUPS", 1, at("SI"))
		constant(2, 7)
		a.vec("VMULPS", at("DI"), 7, 2)
		a.vec("VMULPS", 0, 0, 0)
		constant(3, 7)
		a.vec("VFMADD231PS", 7, 0, 2) // v
		a.vec("VMOVUPS", 2, at("DI"))
		a.vec("VSQRTPS", 2, 2)
		constant(5, 7)
		constant(6, 6)
		a.vec("VFMADD213PS", 6, 7, 2)
		a.vec("VDIVPS", 2, 1, 1)
		constant(7, 7)
		a.vec("VMULPS", at("DX"), 7, 0)
		constant(4, 7)
		a.vec("VFNMADD231PS", 7, 1, 0)
		a.vec("VMOVUPS", 0, at("DX"))
	}, "DX", "SI", "DI", "BX")
	a.ret()
}
