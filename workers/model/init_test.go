package model

import (
	"math"
	"strings"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
)

func TestInitialWeightsComeFromTheSeedAlone(t *testing.T) {
	a, _ := New(small(true), 3)
	b, _ := New(small(true), 3)
	c, _ := New(small(true), 4)
	if sameBits(a.data, b.data) >= 0 || sameBits(a.data, c.data) < 0 {
		t.Error("equal seeds must give equal weights, and other seeds others")
	}
	sum, square := 0.0, 0.0
	embed := a.Params()[0].Data
	for _, v := range embed {
		sum, square = sum+float64(v), square+float64(v)*float64(v)
	}
	n := float64(len(embed))
	if mean, deviation := sum/n, math.Sqrt(square/n); math.Abs(mean) > 0.03 || math.Abs(deviation-0.2) > 0.02 {
		t.Errorf("embedding has mean %v and deviation %v, want 0 and 0.2", mean, deviation)
	}
}

// normal is the number at an address: the pair of Box and Muller 1958 of two words of a random block.
func normal(key philox.Key, tensor, element int) float64 {
	w := key.At(philox.Address{Purpose: philox.Init, Ordinal: tensor}.WithToken(element / 4))
	pair := element % 4 / 2 * 2
	r := math.Sqrt(-2 * math.Log((float64(w[pair])+0.5)/(1<<32)))
	angle := 2 * math.Pi * float64(w[pair+1]) / (1 << 32)
	if element%2 == 0 {
		return r * math.Cos(angle)
	}
	return r * math.Sin(angle)
}

func TestEveryInitialWeightOfEveryFamilyHasItsOwnAddress(t *testing.T) {
	all := everyFamily()
	large := small(true)
	large.VocabSize, large.Layers = fillItem/large.HiddenSize+7, 2 // an embedding of more than one item
	all["large"] = large
	for name, c := range all {
		m, err := New(c, 17)
		if err != nil {
			t.Fatal(err)
		}
		key := philox.NewKey(17)
		for k, p := range m.Params() {
			for i, got := range p.Data {
				want := c.InitializerRange * normal(key, k, i)
				switch {
				case strings.HasSuffix(p.Name, "norm.weight"):
					want = 1
				case strings.HasSuffix(p.Name, ".bias"):
					want = 0
				case strings.Contains(p.Name, "o_proj") || strings.Contains(p.Name, "down_proj"):
					want /= 2 // sqrt(2 * 2 layers)
				}
				if math.Abs(float64(got)-want) > 1e-6*math.Abs(want) {
					t.Fatalf("%s: %s[%d] is %v, want %v", name, p.Name, i, got, want)
				}
			}
		}
	}
}
