package model

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestWeightsThatDoNotFitTheConfigAreRefusedAndChangeNothing(t *testing.T) {
	m, _ := New(small(false), 3)
	before := slices.Clone(m.data)
	for _, c := range []struct {
		change func(ts []Tensor) []Tensor
		want   string
	}{
		{func(ts []Tensor) []Tensor { return ts[1:] }, "model.embed_tokens.weight"},
		{func(ts []Tensor) []Tensor {
			return append(ts, Tensor{Name: "extra", Shape: []int{1}, Data: []float32{1}})
		}, "extra"},
		{func(ts []Tensor) []Tensor { return append(ts, ts[2]) }, "twice"},
		{func(ts []Tensor) []Tensor { ts[1].Shape = []int{20, 60}; return ts }, "want [60 20]"},
	} {
		ts := m.Tensors()
		for i := range ts {
			ts[i].Data = slices.Repeat([]float32{9}, len(ts[i].Data))
		}
		if err := m.SetTensors(c.change(ts)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want one with %q", err, c.want)
		}
	}
	if sameBits(before, m.data) >= 0 {
		t.Error("a refused set of weights changed the model")
	}
}

func TestABlankModelTakesWeightsAsAnyOther(t *testing.T) {
	m, err := New(small(false), 3)
	if err != nil {
		t.Fatal(err)
	}
	blank, err := Blank(small(false))
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(blank.data, func(v float32) bool { return v != 0 }) {
		t.Error("a blank model has weights")
	}
	if err := blank.SetTensors(m.Tensors()); err != nil {
		t.Fatal(err)
	}
	p := Pack(ids(1, 40, 53))
	got, _, err := blank.LogProbs(t.Context(), nil, p)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := m.LogProbs(t.Context(), nil, p)
	if err != nil {
		t.Fatal(err)
	}
	if i := sameBits(got, want); i >= 0 {
		t.Errorf("log-prob %d differs", i)
	}
}

func TestATiedModelMayRepeatItsEmbeddingAsHead(t *testing.T) {
	m, _ := New(small(true), 3)
	head := m.Tensors()[0]
	head.Name = "lm_head.weight"
	if err := m.SetTensors(append(m.Tensors(), head)); err != nil {
		t.Error(err)
	}
	head.Data = slices.Clone(head.Data)
	head.Data[7]++
	if m.SetTensors(append(m.Tensors(), head)) == nil {
		t.Error("a head that differs from the tied embedding was accepted")
	}
}

func TestBadPacksAndSpansAreRefused(t *testing.T) {
	m, _ := New(small(true), 3)
	for what, p := range map[string]Packed{
		"no offsets":     {IDs: []int32{1}},
		"wrong end":      {IDs: []int32{1}, Offsets: []int{0, 2}},
		"empty sequence": {IDs: []int32{1}, Offsets: []int{0, 0, 1}},
		"unknown id":     {IDs: []int32{53}, Offsets: []int{0, 1}},
		"negative id":    {IDs: []int32{-1}, Offsets: []int{0, 1}},
		"too long":       Pack(make([]int32, 513)),
	} {
		if _, _, err := m.LogProbs(t.Context(), nil, p); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	c := NewKVCache(m.Config, 2)
	for what, s := range map[string]Span{
		"no tokens":     {Blocks: []int{0}},
		"few blocks":    {IDs: []int32{1}, Start: 64, Blocks: []int{0}},
		"unknown block": {IDs: []int32{1}, Blocks: []int{2}},
		"unknown id":    {IDs: []int32{99}, Blocks: []int{0}},
		"past the end":  {IDs: []int32{1}, Start: 512, Blocks: make([]int, 9)},
	} {
		if _, err := m.Extend(t.Context(), nil, []Span{s}, c); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}

func TestACopiedBlockServesAsTheOriginal(t *testing.T) {
	m, _ := New(small(true), 3)
	c := NewKVCache(m.Config, 3)
	if _, err := m.Extend(t.Context(), nil, []Span{{IDs: ids(1, 40, 53), Blocks: []int{0}}}, c); err != nil {
		t.Fatal(err)
	}
	c.CopyBlock(2, 0)
	next := func(block int) []float32 {
		logits, err := m.Extend(t.Context(), nil, []Span{{IDs: []int32{7}, Start: 40, Blocks: []int{block}, Want: true}}, c)
		if err != nil {
			t.Fatal(err)
		}
		return logits
	}
	if i := sameBits(next(0), next(2)); i >= 0 {
		t.Errorf("logit %d differs after the copy", i)
	}
}

func TestOverflowIsAnErrorAndTheWorkspaceServesOn(t *testing.T) {
	m, _ := New(small(true), 3)
	ws, c := NewWorkspace(), NewKVCache(m.Config, 1)
	span := []Span{{IDs: ids(1, 4, 53), Blocks: []int{0}, Want: true}}
	old := m.params[5].Data[0]
	m.params[5].Data[0] = math.MaxFloat32
	m.params[6].Data[0] = math.MaxFloat32
	m.WeightsChanged()
	if _, err := m.Extend(t.Context(), ws, span, c); err == nil {
		t.Error("Extend returned logits that are not numbers")
	}
	if _, _, err := m.LogProbs(t.Context(), ws, Pack(span[0].IDs)); err == nil {
		t.Error("LogProbs returned numbers that are not finite")
	}
	m.params[5].Data[0], m.params[6].Data[0] = old, 0
	m.WeightsChanged()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Extend(ended, ws, span, c); err == nil {
		t.Error("Extend ran after its context ended")
	}
	if _, err := m.Extend(t.Context(), ws, span, c); err != nil {
		t.Error(err)
	}
}
