package train

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestABatchIsReadAsItWasWritten(t *testing.T) {
	b := withOptional(someBatch(t, tinyModel(t, 1), 12, 1))
	b.Sequences[1].Advantages, b.Sequences[2].RefLogProbs, b.Sequences[3].EngineLogProbs = nil, nil, nil
	raw, err := EncodeBatch(b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeBatch(raw)
	if err != nil || !reflect.DeepEqual(got, b) {
		t.Fatalf("decoded batch differs (%v)", err)
	}
	slices.Reverse(b.Sequences)
	again, err := EncodeBatch(b)
	if err != nil || !reflect.DeepEqual(again, raw) {
		t.Errorf("the same sequences in another order have other bytes (%v)", err)
	}
	digest, err := b.Digest()
	if err != nil || len(digest) != 64 {
		t.Errorf("digest %q, %v", digest, err)
	}
	empty, err := EncodeBatch(Batch{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeBatch(empty); err != nil || len(got.Sequences) != 0 {
		t.Errorf("empty batch: %v, %v", got, err)
	}
}

func TestADamagedBatchIsRefused(t *testing.T) {
	raw, err := EncodeBatch(someBatch(t, tinyModel(t, 1), 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		bad := slices.Clone(raw)
		bad[i] ^= 4
		if _, err := DecodeBatch(bad); !errors.Is(err, ErrBatch) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
		if _, err := DecodeBatch(raw[:i]); !errors.Is(err, ErrBatch) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
}

func TestABatchThatCannotBeTrainedOnIsNamed(t *testing.T) {
	m := tinyModel(t, 1)
	for want, spoil := range map[string]func(*Batch){
		"used twice":         func(b *Batch) { b.Sequences[1].Ordinal = b.Sequences[0].Ordinal },
		"negative":           func(b *Batch) { b.Sequences[1].Ordinal = -1 },
		"as many of each":    func(b *Batch) { b.Sequences[1].Mask = b.Sequences[1].Mask[1:] },
		"advantage is NaN":   func(b *Batch) { b.Sequences[1].Advantage = float32(math.NaN()) },
		"first token is 1":   func(b *Batch) { b.Sequences[1].Mask[0] = 1 },
		"is 2, want 0 or 1":  func(b *Batch) { b.Sequences[1].Mask[1] = 2 },
		"has mask 0 and log": func(b *Batch) { b.Sequences[1].LogProbs[0] = -1 },
		"is +Inf":            func(b *Batch) { b.Sequences[1].Mask[1], b.Sequences[1].LogProbs[1] = 1, float32(math.Inf(1)) },
		"no loss":            func(b *Batch) { b.Sequences = nil },
	} {
		b := someBatch(t, m, 3, 1)
		spoil(&b)
		s := NewState(m)
		if _, err := Step(t.Context(), s, b, 1, testObjective(), testOptimizer()); !errors.Is(err, ErrBatch) || !strings.Contains(err.Error(), want) {
			t.Errorf("refusal is %v, want ErrBatch with %q", err, want)
		}
		if s.AppliedStep != 0 {
			t.Errorf("%s: a refused batch was applied", want)
		}
	}
}

func TestLeavesBalanceTokensAndKeepOrdinalOrder(t *testing.T) {
	b := someBatch(t, tinyModel(t, 1), 100, 1)
	leaves, err := divide(b, testObjective())
	if err != nil {
		t.Fatal(err)
	}
	seen, least, most := 0, math.MaxInt, 0
	for _, l := range leaves {
		tokens := 0
		for i, it := range l {
			tokens += len(it.IDs)
			if i > 0 && it.Ordinal <= l[i-1].Ordinal {
				t.Errorf("ordinal %d follows %d in a leaf", it.Ordinal, l[i-1].Ordinal)
			}
		}
		seen, least, most = seen+len(l), min(least, tokens), max(most, tokens)
	}
	if seen != 100 || most-least > 30 {
		t.Errorf("leaves hold %d sequences, %d to %d tokens, want 100 and nearly equal loads", seen, least, most)
	}
}

func TestMicroBatchesCoverALeafWithinTheLimit(t *testing.T) {
	var l leaf
	for i, n := range []int{30, 30, 4, 200, 64, 1, 63, 65} {
		l = append(l, item{Sequence: Sequence{Ordinal: i, IDs: make([]int32, n)}})
	}
	var got [][]int
	for _, m := range l.micro(64) {
		var sizes []int
		for _, it := range m {
			sizes = append(sizes, len(it.IDs))
		}
		got = append(got, sizes)
	}
	if want := [][]int{{30, 30, 4}, {200}, {64}, {1, 63}, {65}}; !reflect.DeepEqual(got, want) {
		t.Errorf("micro-batches %v, want %v", got, want)
	}
}
