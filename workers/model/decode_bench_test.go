package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/cpu"
)

// sized are the three sizes that speed is stated for: about 1M (the quickstart's), 10M and 135M (SmolLM2-135M's shape) weights.
func sized(name string) Config {
	c := Config{MaxPosition: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.02}
	switch name {
	case "1M":
		return million()
	case "10M":
		c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Heads, c.KVHeads, c.HeadDim = 8192, 256, 896, 8, 4, 2, 64
	case "135M":
		c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Heads, c.KVHeads, c.HeadDim = 49152, 576, 1536, 30, 9, 3, 64
	}
	return c
}

// BenchmarkDecode draws one token for each of some sequences that have 128 tokens of context. Bytes are those of the packed weights.
func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		size  string
		batch int
	}{{"1M", 1}, {"1M", 64}, {"1M", 256}, {"10M", 1}, {"10M", 64}, {"135M", 1}, {"135M", 4}, {"135M", 64}} {
		for _, p := range []Precision{PrecisionFP32, PrecisionBF16} {
			b.Run(fmt.Sprintf("%s/%s/batch%d", c.size, p, c.batch), func(b *testing.B) {
				backend, err := cpu.FromEnv()
				if err != nil {
					b.Fatal(err)
				}
				decode(b, mustModel(b, backend, sized(c.size), WithPrecision(p)), c.batch)
			})
		}
	}
}

func decode(b *testing.B, m *Model, batch int) {
	const context, blocks = 128, 3
	cache := newKVCache(m.backend, m.Config, batch*blocks, WithPrecision(m.precision))
	spans, choices := make([]Span, batch), make([]Choice, batch)
	for i := range spans {
		spans[i] = Span{IDs: ids(uint64(i), context, m.Config.VocabSize), Blocks: []int{blocks * i, blocks*i + 1, blocks*i + 2}}
		choices[i] = Choice{Temperature: 1}
		choices[i].At.Sample = i
	}
	ws := NewWorkspace()
	if _, err := m.Extend(b.Context(), ws, spans, cache); err != nil {
		b.Fatal(err)
	}
	for i := range spans {
		spans[i].Start, spans[i].IDs, spans[i].Want = context, spans[i].IDs[:1], true
	}
	var draws []Draw
	best := time.Hour
	start := cpuTime()
	b.ReportAllocs()
	for b.Loop() {
		var err error
		from := time.Now()
		if draws, err = m.Sample(b.Context(), ws, spans, cache, choices, 0, draws[:0]); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(from))
	}
	report(b, batch, start)
	b.ReportMetric(float64(batch)/best.Seconds(), "best-tokens/s")
	b.ReportMetric(float64(m.packedBytes())/best.Seconds()/1e9, "best-GB/s")
}

// packedBytes is the memory that a decode step reads of the weights.
func (m *Model) packedBytes() int {
	n := m.packed.head.Len
	for _, l := range m.packed.layers {
		n += l.qkv.Len + l.out.Len + l.gateUp.Len + l.down.Len
	}
	if m.precision == PrecisionBF16 {
		return 2 * n
	}
	return 4 * n
}
