package engine

import (
	"fmt"
	"math"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
)

// Request asks for one turn.
type Request struct {
	Session     string         // one per trajectory: its KV is kept between turns until Release; empty keeps nothing
	Group       string         // not empty: others start from the same IDs, so the prompt's unfilled block is kept for them to copy
	IDs         []int32        // the whole context: prompt and all turns so far
	MaxNew      int            // ids to generate at most, at least 1
	Temperature float32        // 0 is greedy
	TopK        int            // sample from the TopK likeliest ids only; 0 is off
	TopP        float32        // then from the smallest set of likeliest ids that holds TopP of the rest, in [0,1]; 0 is off
	TopLogProbs int            // likeliest ids to report with each id, at most MaxTopLogProbs
	Stop        []int32        // ids that end the turn; the one met is part of the result
	Seed        uint64         // the run's seed
	Address     philox.Address // id i of the turn is drawn at Address.WithToken(i)

	// OnToken, if not nil, is called once for each id, in order, before Generate returns and never after it. It is called by the goroutine
	// that steps the model, so it must not wait for anything.
	OnToken func(Token)
}

// MaxTopLogProbs bounds TopLogProbs, as the public completion interfaces do.
const MaxTopLogProbs = 20

// Token is one generated id with its log-prob and entropy as in Generation.
type Token struct {
	ID          int32
	LogProb     float32
	Entropy     float32
	TopLogProbs []model.Likely // as asked by Request.TopLogProbs
}

// check refuses what no state of the engine could serve.
func (s *scheduler) check(r Request) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: session %q: "+format, append([]any{ErrRequest, r.Session}, args...)...)
	}
	total, positions, vocab := len(r.IDs)+r.MaxNew, s.runner.positions(), s.runner.vocab()
	switch {
	case len(r.IDs) == 0:
		return refuse("IDs is empty, want at least one id")
	case r.MaxNew < 1:
		return refuse("MaxNew is %d, want at least 1", r.MaxNew)
	case !(r.Temperature >= 0) || math.IsInf(float64(r.Temperature), 0):
		return refuse("Temperature is %v, want 0 (greedy) or a positive number", r.Temperature)
	case r.TopK < 0:
		return refuse("TopK is %d, want 0 (off) or a positive number of ids", r.TopK)
	case !(r.TopP >= 0 && r.TopP <= 1):
		return refuse("TopP is %v, want 0 (off) or a share up to 1", r.TopP)
	case r.TopLogProbs < 0 || r.TopLogProbs > MaxTopLogProbs:
		return refuse("TopLogProbs is %d, want 0 to %d", r.TopLogProbs, MaxTopLogProbs)
	case !r.Address.WithToken(r.MaxNew).Valid():
		return refuse("Address %+v with %d new ids does not fit its fields", r.Address, r.MaxNew)
	case positions > 0 && total > positions:
		return refuse("%d context ids and MaxNew %d exceed the model's %d positions", len(r.IDs), r.MaxNew, positions)
	case blocksFor(total) > s.engine.opt.Blocks:
		return refuse("%d context ids and MaxNew %d need %d KV blocks, the engine has %d: raise its Blocks",
			len(r.IDs), r.MaxNew, blocksFor(total), s.engine.opt.Blocks)
	}
	for i, id := range r.IDs {
		if id < 0 || int(id) >= vocab {
			return refuse("id %d at position %d is outside the vocabulary [0,%d)", id, i, vocab)
		}
	}
	return nil
}

func blocksFor(tokens int) int { return (tokens + model.BlockTokens - 1) / model.BlockTokens }
