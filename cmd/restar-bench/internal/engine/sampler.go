package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
)

// newSampler makes an engine; each request samples Batch turns at once. The answer holds the seconds of all of it, and the ids a second
// once every prompt had been read.
func newSampler(s Shape) (turn, error) {
	m, err := model.New(s.config(), 1, model.WithPrecision(model.Precision(s.Precision)))
	if err != nil {
		return nil, err
	}
	blocks := s.Batch * ((s.Prompt+s.New)/model.BlockTokens + 1)
	e, err := engine.New(m, "bench", engine.Options{Blocks: blocks})
	if err != nil {
		return nil, err
	}
	seed := uint64(0)
	return func(ctx context.Context, request string) (match.Answer, error) {
		if err := threads(request); err != nil {
			return match.Answer{}, err
		}
		seed++
		return sample(ctx, e, s, seed)
	}, nil
}

func sample(ctx context.Context, e *engine.Engine, s Shape, seed uint64) (match.Answer, error) {
	var wg sync.WaitGroup
	// The engine's goroutine writes clock and begun; the turns' ends order that before the reads below.
	begun, after, faults := 0, 0, make([]error, s.Batch)
	var clock time.Time
	start := time.Now()
	for i := range s.Batch {
		first := true
		r := engine.Request{
			IDs: ids(i, s.Prompt, s.Vocab), MaxNew: s.New, Temperature: 1, Seed: seed, Address: philox.Address{Ordinal: i},
			OnToken: func(engine.Token) {
				if first {
					first = false
					if begun++; begun == s.Batch {
						clock = time.Now()
					}
				} else if begun == s.Batch {
					after++
				}
			},
		}
		wg.Go(func() { _, faults[i] = e.Generate(ctx, r) })
	}
	wg.Wait()
	end := time.Now()
	a := match.Answer{Seconds: end.Sub(start).Seconds()}
	if err := errors.Join(faults...); err != nil {
		return a, err
	}
	a.Rate = float64(after) / end.Sub(clock).Seconds()
	return a, nil
}
