package cpu

import (
	"sync"
	"time"

	"github.com/restar-rl/restar/kernels"
)

// Peak measures what the path's multiply-adds reach on operands in registers, in 1e9 operations a second on a number of threads at
// once: the best of some runs, each shorter than what a busy machine gives a thread at a time. Products are compared with it. A path without such instructions for a precision
// has no peak, which is 0.
func (b *Backend) Peak(p kernels.Precision, threads int) float64 {
	loop, perRound := b.peakLoop(p)
	if loop == nil {
		return 0
	}
	const rounds, tries = 60_000, 40
	best := 0.0
	for range tries {
		var wg sync.WaitGroup
		start := time.Now()
		for range threads {
			wg.Go(func() { loop(rounds) })
		}
		wg.Wait()
		best = max(best, float64(threads*rounds*perRound)/time.Since(start).Seconds()/1e9)
	}
	return best
}

// peakLoop returns a loop and its operations in a round; a multiply-add is two.
func (b *Backend) peakLoop(p kernels.Precision) (loop func(rounds int), perRound int) {
	switch {
	case p == kernels.PrecisionBF16 && b.bf16:
		return avx512PeakPairs, 24 * 32 * 2
	case p == kernels.PrecisionBF16:
		return nil, 0
	case b.isa == avx512:
		return avx512PeakFloats, 24 * 16 * 2
	case b.isa == avx2:
		return avx2PeakFloats, 12 * 8 * 2
	}
	return nil, 0
}
