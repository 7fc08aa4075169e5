package model

import (
	"slices"
	"testing"
)

// A pass of few rows keeps all of its logits for its gradient. One of more than 2^24 logits keeps that many, so that a further row costs what
// its activations take, and its gradient has the bits of passes that keep all.
func TestAPassKeepsAtMost64MiBOfLogits(t *testing.T) {
	const vocab, most, length = 1 << 16, 64 << 20 / 4, 64
	m, err := New(Config{VocabSize: vocab, HiddenSize: 4, IntermediateSize: 4, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 4, MaxPosition: length,
		RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	all := make([][]int32, most/vocab/length+1)
	for i := range all {
		all[i] = ids(uint64(i), length, vocab)
	}
	coef := func(lp, _ []float32) ([]float32, error) { return lp, nil }
	floats := func(g *Gradient, sequences ...[]int32) int {
		t.Helper()
		ws := NewWorkspace()
		if err := m.Backward(t.Context(), ws, Pack(sequences...), coef, g); err != nil {
			t.Fatal(err)
		}
		return ws.Floats()
	}
	parts, whole := NewGradient(m), NewGradient(m)
	last := len(all) - 1
	full, one, over := floats(parts, all[:last]...), floats(parts, all[last]), floats(whole, all...)
	if got, want := full-one, (last-1)*length*vocab; got < want {
		t.Errorf("%d more sequences take %d more floats, want their %d logits", last-1, got, want)
	}
	if rest := one - length*vocab; full > most+last*rest {
		t.Errorf("%d rows take %d floats, want at most %d for logits and %d for the rest", last*length, full, most, last*rest)
	}
	if got, want := over-full, length*vocab/16; got > want {
		t.Errorf("a sequence beyond 2^24 logits takes %d more floats, want at most %d: its %d logits are over the bound", got, want, length*vocab)
	}
	for i, want := range parts.Tensors() {
		if !slices.Equal(whole.Tensors()[i].Data, want.Data) {
			t.Errorf("the gradient of %s differs from that of passes that keep all logits", want.Name)
		}
	}
}
