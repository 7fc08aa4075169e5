package model

import (
	"testing"

	"github.com/restar-rl/restar/kernels/cpu"
	"github.com/restar-rl/restar/kernels/philox"
)

// small is a configuration in which no size is round: three query heads to a key-value head, odd widths and vocabulary.
func small(tied bool) Config {
	return Config{VocabSize: 53, HiddenSize: 20, IntermediateSize: 37, Layers: 2, Heads: 6, KVHeads: 2, HeadDim: 10,
		MaxPosition: 512, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: tied, InitializerRange: 0.2}
}

// even is a configuration whose rows fill the vector registers, and more than one panel of columns.
func even() Config {
	return Config{VocabSize: 300, HiddenSize: 96, IntermediateSize: 208, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32,
		MaxPosition: 512, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.1}
}

// everyFamily is small in each family, with every option that a family has.
func everyFamily() map[string]Config {
	with := func(f Family, tied bool, change func(c *Config)) Config {
		c := small(tied)
		c.Family = f
		change(&c)
		return c
	}
	return map[string]Config{
		"qwen3":        small(true),
		"qwen3 untied": small(false),
		"qwen3 biased": with(Qwen3, false, func(c *Config) { c.AttentionBias = true }),
		"qwen2": with(Qwen2, true, func(c *Config) {
			c.RopeScaling = RopeScaling{Kind: RopeYaRN, Factor: 4, OriginalPosition: 64, BetaFast: 32, BetaSlow: 1, AttentionFactor: yarnAttention(4, 0, 0)}
		}),
		"llama": with(Llama, false, func(c *Config) {
			c.RopeScaling = RopeScaling{Kind: RopeLlama3, Factor: 8, OriginalPosition: 64, LowFreqFactor: 1, HighFreqFactor: 4}
		}),
		"llama biased": with(Llama, true, func(c *Config) {
			c.AttentionBias, c.MLPBias, c.RopeScaling = true, true, RopeScaling{Kind: RopeLinear, Factor: 2}
		}),
	}
}

// ids draws n token ids below vocab.
func ids(seed uint64, n, vocab int) []int32 {
	k := philox.NewKey(seed)
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(k.IntN(philox.Address{Purpose: philox.Generate, Token: i}, vocab))
	}
	return out
}

// onEveryPath runs a test on each instruction path of this processor.
func onEveryPath(t *testing.T, f func(t *testing.T, b *cpu.Backend)) {
	for _, name := range cpu.Paths() {
		t.Run(name, func(t *testing.T) {
			b, err := cpu.New(name)
			if err != nil {
				t.Fatal(err)
			}
			f(t, b)
		})
	}
}

// inEveryNumerics runs a test for each numerics id of this processor: every path and both precisions.
func inEveryNumerics(t *testing.T, f func(t *testing.T, b *cpu.Backend, p Precision)) {
	seen := map[string]bool{}
	for _, name := range cpu.Paths() {
		for _, p := range []Precision{PrecisionFP32, PrecisionBF16} {
			b, err := cpu.New(name)
			if err != nil {
				t.Fatal(err)
			}
			if id := b.NumericsID(p); !seen[id] {
				seen[id] = true
				t.Run(id, func(t *testing.T) { f(t, b, p) })
			}
		}
	}
}

func mustModel(t testing.TB, b *cpu.Backend, c Config, opts ...Option) *Model {
	t.Helper()
	m, err := newModel(b, c, 7, opts...)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range m.params { // norms away from 1 and biases from 0, so that their gradients matter
		if len(p.Shape) == 1 {
			for j, initial := range p.Data {
				p.Data[j] = initial + 0.3*float32(philox.NewKey(9).Uniform(philox.Address{Purpose: philox.Init, Ordinal: i, Token: j})-0.5)
			}
		}
	}
	m.WeightsChanged()
	return m
}
