package train

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/restar-rl/restar/workers/model"
)

// stepBench is a model's shape and the lengths of the sequences of its steps.
type stepBench struct {
	name      string
	config    model.Config
	sequences int
	tokens    int // of each
}

func shape(vocab, dim, ff, layers, heads, kv, headDim int) model.Config {
	return model.Config{VocabSize: vocab, HiddenSize: dim, IntermediateSize: ff, Layers: layers, Heads: heads, KVHeads: kv, HeadDim: headDim,
		MaxPosition: 1024, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.02}
}

var stepBenches = []stepBench{
	{"1M", shape(1024, 128, 384, 4, 4, 2, 32), 16, 256},
	{"10M", shape(8192, 256, 896, 8, 4, 2, 64), 4, 512},
	{"135M", shape(49152, 576, 1536, 30, 9, 3, 64), 1, 512},
}

// BenchmarkWholeStep is a whole optimizer step: forward, backward, clip and AdamW.
func BenchmarkWholeStep(b *testing.B) {
	for _, p := range []model.Precision{model.PrecisionFP32, model.PrecisionBF16} {
		for _, c := range stepBenches {
			b.Run(string(p)+"/"+c.name, func(b *testing.B) { benchmarkStep(b, p, c) })
		}
	}
}

func benchmarkStep(b *testing.B, p model.Precision, c stepBench) {
	m, err := model.New(c.config, 1, model.WithPrecision(p))
	if err != nil {
		b.Fatal(err)
	}
	s, batch := NewState(m), Batch{}
	for i := range c.sequences {
		q := Sequence{Ordinal: i, IDs: make([]int32, c.tokens), Mask: make([]uint8, c.tokens), LogProbs: make([]float32, c.tokens)}
		for t := range q.IDs {
			q.IDs[t] = int32((i*131 + t*t*7 + t) % c.config.VocabSize)
			if t > 0 {
				q.Mask[t] = 1
			}
		}
		batch.Sequences = append(batch.Sequences, q)
	}
	opt := Optimizer{LR: 1e-4, Beta1: 0.9, Beta2: 0.95, WeightDecay: 0.01, ClipNorm: 1}
	step := func() {
		if _, err := Step(b.Context(), s, batch, s.AppliedStep+1, Objective{Kind: SFT}, opt); err != nil {
			b.Fatal(err)
		}
	}
	step()
	best, cpu := time.Duration(1<<62), time.Duration(1<<62)
	for b.Loop() {
		start, used := time.Now(), processTime()
		step()
		best, cpu = min(best, time.Since(start)), min(cpu, processTime()-used)
	}
	tokens := float64(c.sequences * c.tokens)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(tokens/best.Seconds(), "tokens/s")
	b.ReportMetric(tokens/cpu.Seconds(), "tokens/cpu-s")
}

// processTime is the processor time of the process: on a shared machine it says more than the clock.
func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
