package train

import (
	"bytes"
	"testing"
)

func TestPassesHoldEverySequenceOnceWithinTheLimit(t *testing.T) {
	m := tinyModel(t, 1)
	b := someBatch(t, m, 40, 2)
	want := map[string]int{}
	key := func(ids []int32) string {
		out := make([]rune, len(ids))
		for i, id := range ids {
			out[i] = 'A' + id
		}
		return string(out)
	}
	for _, s := range b.Sequences {
		want[key(s.IDs)]++
	}
	const limit = 150
	passes, err := Passes(b, Objective{Kind: SFT, Norm: "token-mean"}, Plan{MicroTokens: limit})
	if err != nil {
		t.Fatal(err)
	}
	n, joint := 0, 0
	for p := range passes {
		n++
		if len(p.Offsets) > 2 {
			joint++
			if len(p.IDs) > limit {
				t.Errorf("a pass has %d tokens, want at most %d", len(p.IDs), limit)
			}
		}
		for i := range len(p.Offsets) - 1 {
			want[key(p.IDs[p.Offsets[i]:p.Offsets[i+1]])]--
		}
	}
	for ids, left := range want {
		if left != 0 {
			t.Errorf("sequence %s is missing %d times", ids, left)
		}
	}
	if n < Leaves || joint == 0 {
		t.Errorf("%d passes, %d of several sequences; want some of every leaf", n, joint)
	}
	if _, err := Passes(Batch{}, Objective{Kind: SFT}, Plan{}); err == nil {
		t.Error("a batch without tokens is no error")
	}
}

func TestABatchIsAppendedInOneAllocation(t *testing.T) {
	b := someBatch(t, tinyModel(t, 1), 6, 3)
	b.Sequences[1].Advantages = make([]float32, len(b.Sequences[1].IDs))
	alone, err := EncodeBatch(b)
	if err != nil {
		t.Fatal(err)
	}
	after, err := AppendBatch([]byte("head\n"), b)
	if err != nil || !bytes.Equal(after, append([]byte("head\n"), alone...)) {
		t.Errorf("the batch after a head differs from the batch alone (%v)", err)
	}
	sequences, err := b.sorted()
	if err != nil || encodedSize(sequences) != len(alone) {
		t.Errorf("size %d was made room for, %d bytes were written (%v)", encodedSize(sequences), len(alone), err)
	}
}
