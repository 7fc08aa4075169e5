package train

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/restar-rl/restar/workers/model"
)

// State is what optimizer steps transform: weights, AdamW moments and counters. One goroutine uses it at a time.
type State struct {
	Model       *model.Model
	M, V        []model.Tensor // first and second moments, in the order of Model.Params
	AppliedStep int64          // the last step applied, skipped ones included
	Updates     int64          // AdamW updates since the moments were zero: bias correction and schedule count these
	Plan        Plan           // how steps are computed; not part of what is saved

	scratch scratch
	ranks   *ranks // nil: this process computes all
	broken  error
}

// NewState returns the state before step 1, which shares the model's weights.
func NewState(m *model.Model) *State {
	s := &State{Model: m}
	for _, p := range m.Params() {
		s.M = append(s.M, model.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, len(p.Data))})
		s.V = append(s.V, model.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, len(p.Data))})
	}
	return s
}

// ResetOptimizer zeroes the moments and starts bias correction and schedule again. AppliedStep goes on. It is for a state that is not
// shared out over ranks yet.
func (s *State) ResetOptimizer() {
	for i := range s.M {
		clear(s.M[i].Data)
		clear(s.V[i].Data)
	}
	s.Updates = 0
}

// Name spaces of a saved state.
const (
	weightsPrefix = "weights/"
	mPrefix       = "adam.m/"
	vPrefix       = "adam.v/"
	countersName  = "counters" // AppliedStep, then Updates: each as count>>24 and count&(1<<24-1), which float32 holds exactly
)

const counterBits = 24

// Tensors lists the whole state, from all its ranks. Weights and moments share the state's memory: encode or copy them before the next step.
func (s *State) Tensors(ctx context.Context) ([]model.Tensor, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	m, v, err := s.moments(ctx)
	if err != nil {
		return nil, err
	}
	return s.list(m, v), nil
}

// list names the tensors of a state with these moments.
func (s *State) list(m, v []model.Tensor) []model.Tensor {
	var out []model.Tensor
	add := func(prefix string, ts []model.Tensor) {
		for _, t := range ts {
			t.Name = prefix + t.Name
			out = append(out, t)
		}
	}
	add(weightsPrefix, s.Model.Tensors())
	add(mPrefix, m)
	add(vPrefix, v)
	var c []float32
	for _, n := range []int64{s.AppliedStep, s.Updates} {
		c = append(c, float32(n>>counterBits), float32(n&(1<<counterBits-1)))
	}
	return append(out, model.Tensor{Name: countersName, Shape: []int{len(c)}, Data: c})
}

// LoadTensors replaces the whole state by one that Tensors listed. A missing, unknown or misshapen tensor is refused before anything
// changes.
func (s *State) LoadTensors(ts []model.Tensor) error {
	byName := map[string]model.Tensor{}
	for _, t := range ts {
		if _, dup := byName[t.Name]; dup {
			return fmt.Errorf("train: state tensor %q occurs twice", t.Name)
		}
		byName[t.Name] = t
	}
	if s.ranks != nil {
		return errors.New("train: a state that is shared out over ranks cannot be replaced: load a new one")
	}
	mine := s.list(s.M, s.V)
	for _, want := range mine {
		got, ok := byName[want.Name]
		if !ok {
			return fmt.Errorf("train: state tensor %q is missing", want.Name)
		}
		if !slices.Equal(got.Shape, want.Shape) || len(got.Data) != len(want.Data) {
			return fmt.Errorf("train: state tensor %q has shape %v and %d values, want %v and %d", want.Name, got.Shape, len(got.Data), want.Shape, len(want.Data))
		}
		delete(byName, want.Name)
	}
	for _, t := range ts {
		if _, left := byName[t.Name]; left {
			return fmt.Errorf("train: state tensor %q is unknown to this model", t.Name)
		}
	}
	return s.copyFrom(ts, mine)
}

// copyFrom takes values whose names and shapes have been checked.
func (s *State) copyFrom(ts, mine []model.Tensor) error {
	from := map[string][]float32{}
	for _, t := range ts {
		from[t.Name] = t.Data
	}
	counters := [2]int64{}
	for i := range counters {
		high, low := from[countersName][2*i], from[countersName][2*i+1]
		counters[i] = int64(high)<<counterBits + int64(low)
		if !(high >= 0 && low >= 0 && low < 1<<counterBits && high < 1<<counterBits) || high != float32(int64(high)) || low != float32(int64(low)) {
			return fmt.Errorf("train: state tensor %q holds %v, want counts in parts of %d bits", countersName, from[countersName], counterBits)
		}
	}
	for _, t := range mine {
		copy(t.Data, from[t.Name])
	}
	s.AppliedStep, s.Updates, s.broken = counters[0], counters[1], nil
	s.Model.WeightsChanged()
	return nil
}

// WeightsDigest is WeightsDigest of the state's model.
func (s *State) WeightsDigest() string { return WeightsDigest(s.Model) }

// WeightsDigest is the SHA-256, in hex, over every weight tensor's name, shape and bits.
func WeightsDigest(m *model.Model) string {
	h, buf := sha256.New(), []byte(nil)
	for _, p := range m.Params() {
		buf = fmt.Appendf(buf[:0], "%q %v\n", p.Name, p.Shape)
		for _, v := range p.Data {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}
