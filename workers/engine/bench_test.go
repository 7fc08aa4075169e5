package engine

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
)

// BenchmarkRollout generates 100 ids in each of 128 sessions, 8 groups of 16, whose 300-id prompts share 200 ids over all groups. The
// model has the quickstart's size, about a million parameters.
func BenchmarkRollout(b *testing.B) {
	m, err := model.New(model.Config{VocabSize: 1024, HiddenSize: 128, IntermediateSize: 384, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 32,
		MaxPosition: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.05}, 1)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e, err := New(m, "v1", Options{Blocks: 2048})
		if err != nil {
			b.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 128 {
			ids := make([]int32, 300)
			for j := range ids {
				ids[j] = int32(j * 7 % 1000)
				if j >= 200 {
					ids[j] += int32(i / 16)
				}
			}
			wg.Go(func() {
				_, err := e.Generate(testContext(b), Request{Session: fmt.Sprint(i), Group: fmt.Sprint(i / 16), IDs: ids, MaxNew: 100,
					Temperature: 1, Address: philox.Address{Ordinal: i / 16, Sample: i % 16}})
				if err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		s := e.Stats()
		b.ReportMetric(float64(s.GeneratedTokens), "tokens/op")
		b.ReportMetric(float64(s.PrefillTokens), "prefilled/op")
		b.ReportMetric(float64(s.Steps), "steps/op")
		e.Close()
	}
	b.ReportMetric(128*100*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

// BenchmarkStep is the time from id to id of some sequences that decode together, model included: the best of all steps beside the mean,
// since a shared machine disturbs most of them.
func BenchmarkStep(b *testing.B) {
	m, err := model.New(model.Config{VocabSize: 1024, HiddenSize: 128, IntermediateSize: 384, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 32,
		MaxPosition: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.05}, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch%d", batch), func(b *testing.B) { step(b, m, batch) })
	}
}

func step(b *testing.B, m *model.Model, batch int) {
	e, err := New(m, "v1", Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	best, last := time.Hour, time.Time{}
	tick := func(Token) {
		now := time.Now()
		if !last.IsZero() {
			best = min(best, now.Sub(last))
		}
		last = now
	}
	for b.Loop() {
		var wg sync.WaitGroup
		for i := range batch {
			r := Request{IDs: []int32{1, 2, 3}, MaxNew: 200, Temperature: 1, Address: philox.Address{Ordinal: i}}
			if i == 0 {
				last, r.OnToken = time.Time{}, tick
			}
			wg.Go(func() {
				if _, err := e.Generate(testContext(b), r); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	b.ReportMetric(float64(b.N*batch*200)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(batch)/best.Seconds(), "best-tokens/s")
}
