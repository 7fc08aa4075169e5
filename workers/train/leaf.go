package train

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/rl"
)

// Leaves is the number of parts into which every batch is cut: the most data-parallel workers that can share a step, whose number
// divides it.
const Leaves = 8

// item is a sequence with the weight of each of its sampled tokens in the loss.
type item struct {
	Sequence
	weight float64
}

// leaf is one part of a batch, in ordinal order.
type leaf []item

// divide gives every sequence its loss weight, from the whole batch, and cuts the batch into leaves.
func divide(b Batch, obj Objective) ([Leaves]leaf, error) {
	sequences, err := b.sorted()
	if err != nil {
		return [Leaves]leaf{}, err
	}
	counts, total := make([]int, len(sequences)), 0
	for i, s := range sequences {
		if err := obj.needs(s); err != nil {
			return [Leaves]leaf{}, err
		}
		counts[i] = s.sampled()
		total += counts[i]
	}
	if total == 0 {
		return [Leaves]leaf{}, fmt.Errorf("%w: none of its %d sequences has a token with mask 1, so it has no loss", ErrBatch, len(sequences))
	}
	weights, err := rl.TokenWeights(obj.Norm, counts, obj.MaxLength)
	if err != nil {
		return [Leaves]leaf{}, fmt.Errorf("train: objective: %w", err)
	}
	items := make([]item, len(sequences))
	for i, s := range sequences {
		items[i] = item{s, weights[i]}
	}
	return balance(items), nil
}

// balance deals sequences to leaves: the longest first, each to the leaf with the fewest tokens so far, the earlier of equals.
func balance(items []item) (leaves [Leaves]leaf) {
	longest := slices.Clone(items)
	slices.SortStableFunc(longest, func(a, b item) int { return cmp.Compare(len(b.IDs), len(a.IDs)) })
	var load [Leaves]int
	for _, it := range longest {
		to := 0
		for i, l := range load {
			if l < load[to] {
				to = i
			}
		}
		leaves[to] = append(leaves[to], it)
		load[to] += len(it.IDs)
	}
	for _, l := range leaves {
		slices.SortFunc(l, func(a, b item) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	}
	return leaves
}

// micro cuts a leaf into runs of consecutive sequences of at most limit tokens, or of one sequence that is longer.
func (l leaf) micro(limit int) []leaf {
	var out []leaf
	for from := 0; from < len(l); {
		to, tokens := from+1, len(l[from].IDs)
		for to < len(l) && tokens+len(l[to].IDs) <= limit {
			tokens += len(l[to].IDs)
			to++
		}
		out = append(out, l[from:to])
		from = to
	}
	return out
}

func (l leaf) pack() model.Packed {
	ids := make([][]int32, len(l))
	for i, it := range l {
		ids[i] = it.IDs
	}
	return model.Pack(ids...)
}

// coefficients returns dL/dlogp of every packed token and adds the tokens to the sums.
func (l leaf) coefficients(obj Objective, total *sums, logp, entropy []float32) []float32 {
	coef, at := make([]float32, len(logp)), 0
	for _, it := range l {
		end := at + len(it.IDs)
		obj.coefficients(total, it, logp[at:end], entropy[at:end], coef[at:end])
		at = end
	}
	return coef
}
