package engine

import (
	"context"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/train"
)

// newTrainer makes a model; each request is one whole optimizer step: forward, backward, clip and AdamW.
func newTrainer(s Shape) (turn, error) {
	m, err := model.New(s.config(), 1, model.WithPrecision(model.Precision(s.Precision)))
	if err != nil {
		return nil, err
	}
	state, batch := train.NewState(m), train.Batch{}
	for i := range s.Sequences {
		q := train.Sequence{Ordinal: i, IDs: ids(i, s.Tokens, s.Vocab), Mask: make([]uint8, s.Tokens), LogProbs: make([]float32, s.Tokens)}
		for t := 1; t < s.Tokens; t++ {
			q.Mask[t] = 1
		}
		batch.Sequences = append(batch.Sequences, q)
	}
	optimizer := train.Optimizer{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, WeightDecay: 0.1, ClipNorm: 1}
	return func(ctx context.Context, request string) (match.Answer, error) {
		if err := threads(request); err != nil {
			return match.Answer{}, err
		}
		start := time.Now()
		metrics, err := train.Step(ctx, state, batch, state.AppliedStep+1, train.Objective{Kind: train.SFT}, optimizer)
		return match.Answer{Seconds: time.Since(start).Seconds(), Loss: metrics.Loss}, err
	}, nil
}

// ids are n ids that repeat no short pattern, other ones for every seed.
func ids(seed, n, vocab int) []int32 {
	out, x := make([]int32, n), uint32(seed)*2654435761+1
	for i := range out {
		x = x*1664525 + 1013904223 // a step of a linear congruential generator (Press et al., Numerical Recipes)
		out[i] = int32((x >> 8) % uint32(vocab))
	}
	return out
}
