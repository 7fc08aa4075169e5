package main

// sums emits row sums that are folded in registers.
func (a *asm) sums() {
	a.sumSquares()
	a.folded("DotFold", false)
	a.folded("TripleFold", true)
}

// sumSquares adds the squares of blocks of 16 floats to 16 lanes of float64. A fused multiply-add rounds as a product and a sum, since
// the product is exact.
func (a *asm) sumSquares() {
	a.fn("SumSquares", "x", "blocks", "acc")
	a.loads("x", "SI", "blocks", "CX", "acc", "DX")
	a.op("VMOVUPD (DX), Z0")
	a.op("VMOVUPD 64(DX), Z1")
	l := a.fresh("loop")
	a.label(l)
	a.op("VCVTPS2PD (SI), Z2")
	a.op("VCVTPS2PD 32(SI), Z3")
	a.op("VFMADD231PD Z2, Z2, Z0")
	a.op("VFMADD231PD Z3, Z3, Z1")
	a.op("ADDQ $64, SI")
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.op("VMOVUPD Z0, (DX)")
	a.op("VMOVUPD Z1, 64(DX)")
	a.ret()
}

// folded is the sum of x*y, or of x*y*z, in 16 lanes that are folded by halves.
func (a *asm) folded(name string, triple bool) {
	if triple {
		a.fn(name, "x", "y", "z", "blocks", "ret:f")
		a.load("z", "BX")
	} else {
		a.fn(name, "x", "y", "blocks", "ret:f")
	}
	a.loads("x", "SI", "y", "DI", "blocks", "CX")
	a.zero(0)
	pointers := []string{"SI", "DI"}
	if triple {
		pointers = append(pointers, "BX")
	}
	a.loop(func() {
		a.vec("VMOVUPS", at("SI"), 1)
		if triple {
			a.vec("VMULPS", at("DI"), 1, 1)
			a.vec("VFMADD231PS", at("BX"), 1, 0)
		} else {
			a.vec("VFMADD231PS", at("DI"), 1, 0)
		}
	}, pointers...)
	a.fold("VADDPS", 0, 1)
	a.op("VMOVSS X0, %s", a.args["ret"])
	a.ret()
}
