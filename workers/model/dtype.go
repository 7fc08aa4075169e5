package model

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DType is how a file stores numbers, by its name in the safetensors format. Memory holds float32, which has every value of each.
type DType string

// The types that files are read in and written in. Reading what was written gives the same bits.
const (
	F32  DType = "F32"
	BF16 DType = "BF16"
	F16  DType = "F16"
)

// dtypes maps each type to its bytes and its name in PyTorch.
var dtypes = map[DType]struct {
	size  int
	torch string
}{F32: {4, "float32"}, BF16: {2, "bfloat16"}, F16: {2, "float16"}}

// size is the number of bytes of one number, 0 for an unknown type.
func (d DType) size() int { return dtypes[d].size }

func (d DType) check() error {
	if d.size() == 0 {
		return fmt.Errorf("dtype is %q, want %s, %s or %s", string(d), F32, BF16, F16)
	}
	return nil
}

// widen converts stored numbers to float32.
func (d DType) widen(dst []float32, b []byte) {
	switch d {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		}
	case F16:
		for i := range dst {
			dst[i] = halfToFloat(binary.LittleEndian.Uint16(b[2*i:]))
		}
	}
}

// narrow converts to stored numbers, rounding to the nearest and ties to even, and returns the index of the first that is not finite
// when stored, or -1.
func (d DType) narrow(b []byte, src []float32) int {
	bad := -1
	for i, v := range src {
		switch d {
		case F32:
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
			if v-v != 0 && bad < 0 {
				bad = i
			}
		case BF16:
			h := floatToBF16(v)
			binary.LittleEndian.PutUint16(b[2*i:], h)
			if h&0x7f80 == 0x7f80 && bad < 0 {
				bad = i
			}
		case F16:
			h := floatToHalf(v)
			binary.LittleEndian.PutUint16(b[2*i:], h)
			if h&0x7c00 == 0x7c00 && bad < 0 {
				bad = i
			}
		}
	}
	return bad
}

// floatToBF16 rounds to the nearest bfloat16, ties to even.
func floatToBF16(v float32) uint16 {
	u := math.Float32bits(v)
	if v != v {
		return uint16(u>>16) | 0x40 // a NaN must not round to an infinity
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// halfToFloat widens an IEEE 754 binary16.
func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10)&0x1f, uint32(h&0x3ff)
	switch exp {
	case 0:
		v := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// floatToHalf rounds to the nearest IEEE 754 binary16, ties to even.
func floatToHalf(v float32) uint16 {
	const least = 1.0 / (1 << 14) // the smallest normal binary16
	sign := uint16(math.Float32bits(v) >> 16 & 0x8000)
	switch a := math.Abs(float64(v)); {
	case v != v:
		return sign | 0x7e00
	case a < least: // subnormal: a whole number of 2^-24
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	case a >= 65520: // half a step beyond the largest, 65504
		return sign | 0x7c00
	}
	u := math.Float32bits(v) & 0x7fffffff
	u += 0xfff + u>>13&1
	return sign | uint16((u-112<<23)>>13)
}
