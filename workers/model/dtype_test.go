package model

import (
	"math"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
)

// nearest is the stored value next to v by search over all finite ones, ties to the even code.
func nearest(v float32, values []float64, codes []uint16) uint16 {
	best, at := math.Inf(1), 0
	for i, x := range values {
		d := math.Abs(x - float64(v))
		if d < best || d == best && codes[i]&1 == 0 {
			best, at = d, i
		}
	}
	return codes[at]
}

func TestNumbersAreStoredAsTheNearestOfTheirType(t *testing.T) {
	for _, c := range []struct {
		name   string
		narrow func(float32) uint16
		widen  func(uint16) float32
	}{
		{"F16", floatToHalf, halfToFloat},
		{"BF16", floatToBF16, func(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }},
	} {
		var values []float64
		var codes []uint16
		for h := range 1 << 15 {
			v := c.widen(uint16(h))
			if v-v == 0 {
				values, codes = append(values, float64(v)), append(codes, uint16(h))
			}
			if v == v && c.narrow(v) != uint16(h) {
				t.Fatalf("%s: %v of code %#x is stored as %#x", c.name, v, h, c.narrow(v))
			}
		}
		key := philox.NewKey(5)
		try := func(v float32) {
			if got, want := c.narrow(v), nearest(v, values, codes); got != want {
				t.Fatalf("%s: %g is stored as %#x, want %#x", c.name, v, got, want)
			}
			if got := c.narrow(-v); got != c.narrow(v)|0x8000 {
				t.Fatalf("%s: %g is stored as %#x, the sign apart from %g", c.name, -v, got, v)
			}
		}
		for i := 1; i < len(values); i += 97 { // ties, and what lies next to them
			tie := float32((values[i-1] + values[i]) / 2)
			try(tie)
			try(math.Nextafter32(tie, 0))
			try(math.Nextafter32(tie, float32(math.Inf(1))))
		}
		for i := range 300 {
			u := key.Uniform(philox.Address{Purpose: philox.Init, Token: i})
			try(float32(math.Exp2(45*u-30) * 1.37)) // F16's normal and subnormal range and below it
		}
		if v := c.widen(c.narrow(float32(math.NaN()))); v == v {
			t.Errorf("%s: NaN is stored as %v", c.name, v)
		}
	}
	if floatToHalf(65519.99) != 0x7bff || floatToHalf(65520) != 0x7c00 {
		t.Error("F16 ends at 65504: below 65520 it is stored, from there on it is infinite")
	}
}
