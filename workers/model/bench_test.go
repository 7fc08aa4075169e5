package model

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/restar-rl/restar/kernels/cpu"
)

// million is the shape of the quickstart's model: about a million weights.
func million() Config {
	return Config{VocabSize: 1024, HiddenSize: 128, IntermediateSize: 384, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 32,
		MaxPosition: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.02}
}

func benchModel(b *testing.B) (*Model, *cpu.Backend) {
	backend, err := cpu.FromEnv()
	if err != nil {
		b.Fatal(err)
	}
	return mustModel(b, backend, million()), backend
}

func benchPack(lengths ...int) Packed {
	var seqs [][]int32
	for i, n := range lengths {
		seqs = append(seqs, ids(uint64(i), n, 1024))
	}
	return Pack(seqs...)
}

// cpuTime is the processor time of the process: on a shared machine it says more than the clock.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report gives tokens by the clock and by processor time.
func report(b *testing.B, tokens int, start time.Duration) {
	b.ReportMetric(float64(b.N*tokens)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(b.N*tokens)/(cpuTime()-start).Seconds(), "tokens/cpu-s")
}

func BenchmarkTrainingTokens(b *testing.B) {
	m, _ := benchModel(b)
	p, ws, g := benchPack(300, 350, 400, 450, 500, 320, 380, 430, 480, 410), NewWorkspace(), NewGradient(m)
	coef := func(lp, _ []float32) ([]float32, error) { return lp, nil }
	start := cpuTime()
	for b.Loop() {
		if err := m.Backward(b.Context(), ws, p, coef, g); err != nil {
			b.Fatal(err)
		}
	}
	report(b, len(p.IDs), start)
}

func BenchmarkLogProbTokens(b *testing.B) {
	m, _ := benchModel(b)
	p, ws := benchPack(300, 350, 400, 450, 500, 320, 380, 430, 480, 410), NewWorkspace()
	start := cpuTime()
	for b.Loop() {
		if _, _, err := m.LogProbs(b.Context(), ws, p); err != nil {
			b.Fatal(err)
		}
	}
	report(b, len(p.IDs), start)
}

func BenchmarkDecodeTokensAtBatch128AndContext300(b *testing.B) {
	const batch, context = 128, 300
	m, backend := benchModel(b)
	cache := newKVCache(backend, m.Config, batch*5, WithPrecision(m.precision))
	spans := make([]Span, batch)
	for i := range spans {
		spans[i] = Span{IDs: ids(uint64(i), context, 1024), Blocks: []int{5 * i, 5*i + 1, 5*i + 2, 5*i + 3, 5*i + 4}}
	}
	ws := NewWorkspace()
	if _, err := m.Extend(b.Context(), ws, spans, cache); err != nil {
		b.Fatal(err)
	}
	for i := range spans {
		spans[i].Start, spans[i].IDs, spans[i].Want = context, spans[i].IDs[:1], true
	}
	start := cpuTime()
	for b.Loop() {
		logits, err := m.Extend(b.Context(), ws, spans, cache)
		if err != nil {
			b.Fatal(err)
		}
		for i := range spans {
			backend.LogSoftmaxRow(logits[i*1024 : (i+1)*1024])
		}
	}
	report(b, batch, start)
}
