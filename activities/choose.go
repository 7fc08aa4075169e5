package activities

import (
	"fmt"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/train"
)

// Choose makes the encoded batches of a round's updates from its groups in memory, in ordinal order, as SelectBatch does from their
// journals. It returns none where dynamic sampling wants another round first.
func Choose(rec Recipe, in SelectInput, groups [][]agent.Trajectory) ([][]byte, error) {
	alg, err := rec.RL.Parameters()
	if err != nil {
		return nil, err
	}
	if alg.Penalty == rl.ReleasedPenalty {
		return nil, fmt.Errorf("rl.penalty is %q, which reads text; groups in memory have no tokenizer, want %q", alg.Penalty, rl.TypedPenalty)
	}
	c := newChooser(rec, alg, in)
	for i, g := range groups {
		c.read(in.FirstOrdinal+i, g)
	}
	if again, err := c.choose(); err != nil || again {
		return nil, err
	}
	parts := c.parts()
	out := make([][]byte, len(parts))
	for i := range parts {
		if out[i], err = parts[i].encode(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Chosen reads the sequences of an encoded batch.
func Chosen(body []byte) (train.Batch, error) {
	b, err := decodeBatch(body)
	return b.Batch, err
}
