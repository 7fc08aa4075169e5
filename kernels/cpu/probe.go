package cpu

import (
	"sync"
	"unsafe"

	"github.com/klauspost/cpuid/v2"

	"github.com/restar-rl/restar/kernels/philox"
)

// hasBF16 reports whether the processor has AVX512_BF16 and multiplies pairs as this package says. Manuals leave room for how the two products of a
// pair are added, and a numerics id must mean the same bits everywhere: a processor that adds in another way runs the path avx512.
var hasBF16 = sync.OnceValue(func() bool {
	return best() == avx512 && cpuid.CPU.Supports(cpuid.AVX512BF16) && pairsAreTwoSteps(1, 0)
})

// pairsAreTwoSteps compares chains of pairs with fused multiply-adds of their elements in an order. The numbers are such that float64
// holds every sum before it is rounded to float32.
func pairsAreTwoSteps(order ...int) bool {
	const chains, length = 64, 16
	key := philox.NewKey(1)
	for chain := range chains {
		var a, c [length]float32
		var b [length * panel]float32
		want := float32(0)
		for p := range length {
			w := key.At(philox.Address{Ordinal: chain, Token: p})
			var x [4]float32 // the elements of a's and of b's pair: 8 bits of significand, exponents from -3 to 4, either sign
			for i := range x {
				x[i] = widenBF16(uint16(w[i]&0x807f | (124+w[i]>>8&7)<<7))
			}
			a[p], b[p*panel] = word(roundBF16(x[0]), roundBF16(x[1])), word(roundBF16(x[2]), roundBF16(x[3]))
			for _, e := range order {
				want = float32(float64(x[e])*float64(x[2+e]) + float64(want))
			}
		}
		avx512PairsRows(&tile{a: unsafe.Pointer(&a[0]), b: unsafe.Pointer(&b[0]), c: unsafe.Pointer(&c[0]), lda: 4 * length, ldc: 4, m: 1, k: length, n: 1})
		if c[0] != want {
			return false
		}
	}
	return true
}
