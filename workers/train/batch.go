package train

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrBatch is wrapped by every refusal of a batch.
var ErrBatch = errors.New("train: batch refused")

// Sequence is one trajectory or demonstration. IDs, Mask and LogProbs have one entry per token.
type Sequence struct {
	Ordinal   int       `json:"ordinal"`   // names the sequence in its batch and orders the sums; unique, at least 0
	IDs       []int32   `json:"ids"`       // prompt and all turns
	Mask      []uint8   `json:"mask"`      // 1 where the model wrote the token; the first token is never one
	LogProbs  []float32 `json:"logprobs"`  // of the policy that sampled, natural log; 0 where Mask is 0
	Advantage float32   `json:"advantage"` // of every sampled token

	// The rest is absent (nil) or has one entry per token; log-probs are 0 where Mask is 0.
	Advantages     []float32 `json:"advantages,omitempty"`      // of each token, in place of Advantage: process supervision
	RefLogProbs    []float32 `json:"ref_logprobs,omitempty"`    // of the reference model
	EngineLogProbs []float32 `json:"engine_logprobs,omitempty"` // of the engine that sampled, where LogProbs are the trainer's own of the same weights
}

// advantage is that of token t.
func (s Sequence) advantage(t int) float32 {
	if s.Advantages != nil {
		return s.Advantages[t]
	}
	return s.Advantage
}

// sampled counts the tokens with mask 1.
func (s Sequence) sampled() int {
	n := 0
	for _, m := range s.Mask {
		n += int(m)
	}
	return n
}

// Batch is the input of one optimizer step. Its meaning does not depend on the order of Sequences.
type Batch struct {
	Sequences []Sequence `json:"sequences"`
}

// sorted returns the sequences in ordinal order after checking them all.
func (b Batch) sorted() ([]Sequence, error) {
	out := slices.Clone(b.Sequences)
	slices.SortStableFunc(out, func(x, y Sequence) int { return cmp.Compare(x.Ordinal, y.Ordinal) })
	for i, s := range out {
		if i > 0 && s.Ordinal == out[i-1].Ordinal {
			return nil, fmt.Errorf("%w: ordinal %d is used twice, want unique ordinals", ErrBatch, s.Ordinal)
		}
		if err := s.validate(); err != nil {
			return nil, fmt.Errorf("%w: sequence of ordinal %d: %w", ErrBatch, s.Ordinal, err)
		}
	}
	return out, nil
}

func (s Sequence) validate() error {
	n := len(s.IDs)
	switch {
	case s.Ordinal < 0:
		return errors.New("the ordinal is negative")
	case n == 0 || len(s.Mask) != n || len(s.LogProbs) != n:
		return fmt.Errorf("%d ids, %d mask and %d log-prob entries, want as many of each and at least one", n, len(s.Mask), len(s.LogProbs))
	case !isFinite(float64(s.Advantage)):
		return fmt.Errorf("advantage is %v, want a finite number", s.Advantage)
	case s.Mask[0] != 0:
		return errors.New("mask of the first token is 1, but nothing comes before it that it could be sampled from")
	}
	for t, m := range s.Mask {
		if m > 1 {
			return fmt.Errorf("mask of token %d is %d, want 0 or 1", t, m)
		}
	}
	for _, p := range []struct {
		name   string
		values []float32
		zero   bool // where the mask is 0
	}{{"log-prob", s.LogProbs, true}, {"reference log-prob", s.RefLogProbs, true}, {"engine log-prob", s.EngineLogProbs, true}, {"advantage", s.Advantages, false}} {
		if err := s.perToken(p.name, p.values, p.zero); err != nil {
			return err
		}
	}
	return nil
}

// perToken checks an optional list of one number a token.
func (s Sequence) perToken(name string, values []float32, zero bool) error {
	if values == nil {
		return nil
	}
	if len(values) != len(s.IDs) {
		return fmt.Errorf("%d entries of %s for %d ids, want as many", len(values), name, len(s.IDs))
	}
	for t, v := range values {
		switch {
		case zero && s.Mask[t] == 0 && v != 0:
			return fmt.Errorf("token %d has mask 0 and %s %v, want 0", t, name, v)
		case !isFinite(float64(v)):
			return fmt.Errorf("%s of token %d is %v, want a finite number", name, t, v)
		}
	}
	return nil
}
