package main

import "math"

// expGroup is the number of logits whose exponentials expGroups adds to one sum.
const expGroup = 64

// generateSampling is what finds a sampled token in a long row.
func generateSampling(a *asm) string {
	a.header()
	a.expGroups()
	return a.out.String()
}

// expGroups writes, for each group of 64 floats x, the sum of e^(x-lse) in float64: argument reduction by ln 2 in two parts and the Taylor
// polynomial of degree 13, whose error is below the rounding of float64. Below -800 an exponential is 0.
//
// Register use: Z0 and Z1 x and n, Z2 polynomial, Z3 sum, Z4 lse; Z8 and up constants.
func (a *asm) expGroups() {
	a.fn("ExpGroups", "x", "groups", "lse", "sums")
	a.loads("x", "SI", "groups", "CX", "sums", "DX")
	a.op("VBROADCASTSD %s, Z4", a.args["lse"])
	const log2e, ln2Hi, ln2Lo, lowest, poly = 8, 9, 10, 11, 12
	constants := []float64{math.Log2E, 0.6931471803691238, 1.9082149292705877e-10, -800}
	for i := 13; i >= 0; i-- {
		constants = append(constants, 1/math.Gamma(float64(i+1)))
	}
	for i, c := range constants {
		a.op("MOVQ $%#x, AX", math.Float64bits(c))
		a.op("VPBROADCASTQ AX, Z%d", 8+i)
	}
	group := a.fresh("group")
	a.label(group)
	a.op("VPXORQ Z3, Z3, Z3")
	for i := range expGroup / 8 {
		a.op("VCVTPS2PD %d(SI), Z0", 32*i)
		a.op("VSUBPD Z4, Z0, Z0")
		a.op("VMAXPD Z%d, Z0, Z0", lowest)
		a.op("VMULPD Z%d, Z0, Z1", log2e)
		a.op("VRNDSCALEPD $8, Z1, Z1")
		a.op("VFNMADD231PD Z%d, Z1, Z0", ln2Hi)
		a.op("VFNMADD231PD Z%d, Z1, Z0", ln2Lo)
		a.op("VMOVAPD Z%d, Z2", poly)
		for k := 1; k <= 13; k++ {
			a.op("VFMADD213PD Z%d, Z0, Z2", poly+k)
		}
		a.op("VSCALEFPD Z1, Z2, Z2")
		a.op("VADDPD Z2, Z3, Z3")
	}
	a.op("VEXTRACTF64X4 $1, Z3, Y0")
	a.op("VADDPD Y0, Y3, Y3")
	a.op("VEXTRACTF128 $1, Y3, X0")
	a.op("VADDPD X0, X3, X3")
	a.op("VPERMILPD $1, X3, X0")
	a.op("VADDSD X0, X3, X3")
	a.op("VMOVSD X3, (DX)")
	a.op("ADDQ $%d, SI", 4*expGroup)
	a.op("ADDQ $8, DX")
	a.op("DECQ CX")
	a.op("JNZ %s", group)
	a.ret()
}
