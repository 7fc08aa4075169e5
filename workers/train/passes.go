package train

import (
	"iter"

	"github.com/restar-rl/restar/workers/model"
)

// Passes are the forward and backward passes of a step on a batch: its sequences, checked, weighed, dealt to leaves and packed, in the
// order in which one worker computes them. Nothing is computed on them here.
func Passes(b Batch, obj Objective, plan Plan) (iter.Seq[model.Packed], error) {
	plan, err := plan.withDefaults()
	if err != nil {
		return nil, err
	}
	leaves, err := divide(b, obj.withDefaults())
	if err != nil {
		return nil, err
	}
	return func(yield func(model.Packed) bool) {
		for _, l := range leaves {
			for _, m := range l.micro(plan.MicroTokens) {
				if !yield(m.pack()) {
					return
				}
			}
		}
	}, nil
}
