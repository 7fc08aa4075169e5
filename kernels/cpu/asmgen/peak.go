package main

// peak emits loops that only multiply and add, in more independent chains than a multiply-add's latency needs: what a micro-kernel could
// reach if its operands cost nothing. Each round is one multiply-add a chain.
func (a *asm) peak() {
	chains, first := 24, 8
	if !a.wide {
		chains, first = 12, 4
	}
	a.peakLoop("PeakFloats", first, chains, func(acc int) {
		if a.wide {
			a.op("VFMADD231PS Z0, Z1, Z%d", acc)
		} else {
			a.op("VFMADD231PS Y0, Y1, Y%d", acc)
		}
	})
	if a.wide {
		a.peakLoop("PeakPairs", first, chains, func(acc int) { a.dotPairs(acc, 0, 1) })
	}
}

func (a *asm) peakLoop(name string, first, chains int, step func(acc int)) {
	a.fn(name, "rounds")
	a.load("rounds", "CX")
	for i := range 2 {
		a.clearRegister(panelKernel{reg: a.reg()}, i)
	}
	for i := range chains {
		a.clearRegister(panelKernel{reg: a.reg()}, first+i)
	}
	l := a.fresh("loop")
	a.label(l)
	for i := range chains {
		step(first + i)
	}
	a.op("DECQ CX")
	a.op("JNZ %s", l)
	a.ret()
}

func (a *asm) reg() byte {
	if a.wide {
		return 'Z'
	}
	return 'Y'
}
