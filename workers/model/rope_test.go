package model

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/kernels/cpu"
)

// ropeCase is what transformers makes of a configuration, in float32; see testdata/golden.py.
type ropeCase struct {
	Config      json.RawMessage `json:"config"`
	Frequencies []float32       `json:"frequencies"`
	Attention   float64         `json:"attention_factor"`
	Cos         []float32       `json:"cos"` // of the last position
	Sin         []float32       `json:"sin"`
}

func ropeCases(t *testing.T) (cases []ropeCase) {
	t.Helper()
	raw, err := os.ReadFile("testdata/rope.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// places is the number of float32 steps from one positive number to another.
func places(a, b float32) int { return int(int32(math.Float32bits(a)) - int32(math.Float32bits(b))) }

// The last place of a frequency near 1 is an angle of 0.008 at position 131,072, so the bound is one place, and few may be off by it: PyTorch's
// power is not always the nearest float32.
func TestFrequenciesAreThoseOfTransformersToTheLastPlace(t *testing.T) {
	kinds := map[string]bool{}
	for _, want := range ropeCases(t) {
		c, err := ParseConfig(want.Config)
		if err != nil {
			t.Fatal(err)
		}
		kinds[c.RopeScaling.Kind] = true
		got := c.frequencies()
		if len(got) != len(want.Frequencies) {
			t.Fatalf("%d frequencies, want %d", len(got), len(want.Frequencies))
		}
		off := 0
		for i, f := range want.Frequencies {
			n := places(got[i], f)
			if n < -1 || n > 1 {
				t.Errorf("%+v: frequency %d is %g, want %g: they are %d places apart", c.RopeScaling, i, got[i], f, n)
			}
			if n != 0 {
				off++
			}
		}
		if off > len(got)/10 && c.RopeScaling.Kind != "" {
			t.Errorf("%+v: %d of %d frequencies differ, want a tenth at most", c.RopeScaling, off, len(got))
		}
		if a := c.RopeScaling.AttentionFactor; c.RopeScaling.Kind == RopeYaRN && math.Abs(a-want.Attention) > 1e-12 {
			t.Errorf("%+v: attention factor is %v, want %v", c.RopeScaling, a, want.Attention)
		}
	}
	for kind := range ropeKeys {
		if kind == "default" {
			kind = ""
		}
		if !kinds[kind] {
			t.Errorf("no case of rope_type %q", kind)
		}
	}
}

func TestAnglesOfTheLastPositionAreThoseOfTransformers(t *testing.T) {
	b, err := cpu.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, want := range ropeCases(t) {
		if want.Cos == nil {
			continue
		}
		tried++
		c, err := ParseConfig(want.Config)
		if err != nil {
			t.Fatal(err)
		}
		table, err := c.angleTable(b, c.MaxPosition)
		if err != nil {
			t.Fatal(err)
		}
		half := c.HeadDim / 2
		cos, sin := make([]float32, half), make([]float32, half)
		s := b.NewStream(kernels.StreamOptions{})
		b.Download(s, cos, table.cos.Slice((c.MaxPosition-1)*half, c.MaxPosition*half))
		b.Download(s, sin, table.sin.Slice((c.MaxPosition-1)*half, c.MaxPosition*half))
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, f := range c.frequencies() {
			if f != want.Frequencies[i] {
				continue // one place off: another angle
			}
			if !(math.Abs(float64(cos[i]-want.Cos[i])) <= 1.2e-7 && math.Abs(float64(sin[i]-want.Sin[i])) <= 1.2e-7) {
				t.Errorf("base %g, pair %d of position %d: cosine and sine are %g and %g, want %g and %g", c.RopeTheta, i, c.MaxPosition-1, cos[i], sin[i], want.Cos[i], want.Sin[i])
			}
		}
	}
	if tried < 2 {
		t.Errorf("angles of %d configurations were compared, want at least 2", tried)
	}
}

func TestAnglesDoNotDependOnHowFarTheTableWasMade(t *testing.T) {
	b, err := cpu.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	c := small(true)
	c.MaxPosition = 5000
	whole, err := c.angleTable(b, c.MaxPosition)
	if err != nil {
		t.Fatal(err)
	}
	read := func(table angleTable, n int) []float32 {
		out := make([]float32, n*c.HeadDim)
		s := b.NewStream(kernels.StreamOptions{})
		b.Download(s, out[:n*c.HeadDim/2], table.cos.Slice(0, n*c.HeadDim/2))
		b.Download(s, out[n*c.HeadDim/2:], table.sin.Slice(0, n*c.HeadDim/2))
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out
	}
	a := &angles{config: c}
	for _, n := range []int{1, 1024, 1025, 3000, 5000} {
		table, err := a.upTo(b, n)
		if err != nil {
			t.Fatal(err)
		}
		if table.positions < n || table.positions > c.MaxPosition {
			t.Errorf("asked for %d positions of %d, got %d", n, c.MaxPosition, table.positions)
		}
		if i := sameBits(read(table, n), read(whole, n)); i >= 0 {
			t.Errorf("asked for %d positions: angle %d differs from those of the whole table", n, i)
		}
	}
}
