package cpu

import "unsafe"

// asmGemv runs the kernel of a kind of product.
func asmGemv(k kind, v *gemvArgs) {
	switch k {
	case paired:
		avx512GemvPairs(v)
	case widened:
		avx512GemvWidened(v)
	default:
		avx512Gemv(v)
	}
}

//go:noescape
func avx512Gemv(v *gemvArgs)

//go:noescape
func avx512GemvPairs(v *gemvArgs)

//go:noescape
func avx512GemvWidened(v *gemvArgs)

// pause waits n times the processor's spin-loop hint.
//
//go:noescape
func pause(n int)

//go:noescape
func avx512WideRows(t *tile)

//go:noescape
func avx512WideHalves(t *tile)

//go:noescape
func avx512ExpGroups(x *float32, groups int, lse float64, sums *float64)

//go:noescape
func avx512WidenRow(dst *float32, src *uint16, blocks int)

//go:noescape
func avx512FetchColumn(from unsafe.Pointer, stride uintptr, rows int)
