package model

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/kernels/cpu"
)

func TestFrequenciesAreThoseOfTransformers(t *testing.T) {
	raw, err := os.ReadFile("testdata/rope.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Config      json.RawMessage `json:"config"`
		Frequencies []float64       `json:"frequencies"`
		Attention   float64         `json:"attention_factor"`
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, want := range cases {
		c, err := ParseConfig(want.Config)
		if err != nil {
			t.Fatal(err)
		}
		kinds[c.RopeScaling.Kind] = true
		got := c.frequencies()
		if len(got) != len(want.Frequencies) {
			t.Fatalf("%d frequencies, want %d", len(got), len(want.Frequencies))
		}
		for i, f := range want.Frequencies { // which transformers computes in float32
			if math.Abs(got[i]-f) > 1e-6*f {
				t.Errorf("%+v: frequency %d is %g, want %g", c.RopeScaling, i, got[i], f)
			}
		}
		if a := c.RopeScaling.AttentionFactor; c.RopeScaling.Kind == RopeYaRN && math.Abs(a-want.Attention) > 1e-12 {
			t.Errorf("%+v: attention factor is %v, want %v", c.RopeScaling, a, want.Attention)
		}
	}
	for kind := range ropeKeys {
		if kind != "default" && !kinds[kind] {
			t.Errorf("no case of rope_type %s", kind)
		}
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
