package sandbox

import (
	"context"
	"testing"
)

// BenchmarkTrivial is the cost of a call that does nearly nothing, eight at a time, with the lite preload.
func BenchmarkTrivial(b *testing.B) {
	p, err := Start(context.Background(), Options{Tier: TierB, Preload: Lite()})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	b.SetParallelism(4) // times GOMAXPROCS
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r, err := p.Run(context.Background(), Call{ID: "bench", Code: "x = [i * i for i in range(10)]\nprint(sum(x))"}); err != nil || r.Stdout != "285\n" {
				b.Errorf("got %+v, %v", r, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
