package activities

import (
	"context"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/train"
)

// solutions are the last batch object with many steps that a trainer read: each of its steps asks for it.
type solutions struct {
	ref   Ref
	batch batch
}

// chosen is the recorded batch of a step.
func (t *Trainer) chosen(ctx context.Context, rec Recipe, h *holding, in TrainInput) (batch, error) {
	b := h.solutions.batch
	if h.solutions.ref != in.Batch {
		var err error
		if b, err = t.batch(ctx, in.Batch); err != nil {
			return b, err
		}
	}
	if b.Draw == 0 {
		return b, nil
	}
	h.solutions = solutions{in.Batch, b}
	b.Batch = b.draw(philox.NewKey(rec.Seed), stageIndex(rec, in.Stage), in.Update)
	return b, nil
}

// draw is the batch of one of the steps that draw from b: the next of its sequences, in an order that is shuffled every epoch.
func (b batch) draw(key philox.Key, stage, update int) train.Batch {
	order := promptOrder{key: key, stage: stage, apart: b.Iteration, n: len(b.Batch.Sequences)}
	out := train.Batch{Sequences: make([]train.Sequence, b.Draw)}
	for i := range out.Sequences {
		out.Sequences[i] = b.Batch.Sequences[order.index(update*b.Draw+i)]
		out.Sequences[i].Ordinal = i
	}
	return out
}

// steps is how many optimizer steps a batch object gives.
func (b batch) steps() int {
	switch {
	case len(b.Batch.Sequences) == 0:
		return 0
	case b.Draw == 0:
		return 1
	}
	return b.Updates
}

// publishes reports whether the weights after an update are a policy that anyone samples: within an iteration of STaR they are not.
func (b batch) publishes(update int) bool { return b.Draw == 0 || update == b.Updates-1 }
