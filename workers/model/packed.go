package model

import (
	"context"
	"sync"

	"github.com/restar-rl/restar/kernels"
)

// packed holds the weights as products read them: those of the forward products, and, once Backward has run, those of the products that
// carry gradients back. In fp32 the latter read the plain weights.
type packed struct {
	layers []packedLayer
	head   kernels.View

	back     []packedLayer
	backHead kernels.View
	backMu   sync.Mutex // guards the making of back and backHead
}

type packedLayer struct{ qkv, out, gateUp, down kernels.View }

// matrices pairs a layer's packed matrices with the weights [n,k] that they come from.
func (c Config) matrices(p *packedLayer, w layer) []matrix {
	d, ff := c.HiddenSize, c.IntermediateSize
	return []matrix{
		{&p.qkv, w.qkv, c.geometry().QKV(), d}, {&p.out, w.out, d, c.Heads * c.HeadDim},
		{&p.gateUp, w.gateUp, 2 * ff, d}, {&p.down, w.down, d, ff},
	}
}

type matrix struct {
	packed  *kernels.View
	weights kernels.View
	n, k    int
}

// allocatePacked makes room for the forward products' weights.
func (m *Model) allocatePacked() error {
	m.packed.layers = make([]packedLayer, m.Config.Layers)
	return m.take(m.allMatrices(m.packed.layers, &m.packed.head), false)
}

// allMatrices pairs all layers' packed matrices, and the head's.
func (m *Model) allMatrices(layers []packedLayer, head *kernels.View) []matrix {
	var all []matrix
	for l, w := range m.weights.layers {
		all = append(all, m.Config.matrices(&layers[l], w)...)
	}
	return append(all, matrix{head, m.weights.head, m.Config.VocabSize, m.Config.HiddenSize})
}

// take allocates packed matrices [n,k], or back [k,n]. They share one allocation, so that a decoder reads its weights from end to end and the
// memory may lie in huge pages.
func (m *Model) take(all []matrix, back bool) error {
	b, t, total := m.backend, m.precision.Operand(), 0
	size := func(x matrix) int {
		if back {
			return b.PackedLen(t, x.k, x.n)
		}
		return b.PackedLen(t, x.n, x.k)
	}
	for _, x := range all {
		total += size(x)
	}
	allocate := b.Floats
	if t == kernels.BF16 {
		allocate = b.Halves
	}
	memory, err := allocate(total)
	if err != nil {
		return err
	}
	at := 0
	for _, x := range all {
		*x.packed = memory.Slice(at, at+size(x))
		at += size(x)
	}
	return nil
}

// WeightsChanged rebuilds what is derived from the weights. It must be called after every change and before any pass.
func (m *Model) WeightsChanged() {
	b, c := m.backend, m.Config
	s := b.NewStream(kernels.StreamOptions{})
	b.Upload(s, m.all, m.data)
	for l, w := range m.weights.layers {
		for _, x := range c.matrices(&m.packed.layers[l], w) {
			b.Pack(s, *x.packed, x.weights, x.n, x.k)
		}
	}
	b.Pack(s, m.packed.head, m.weights.head, c.VocabSize, c.HiddenSize)
	if m.packed.back != nil && m.precision != PrecisionFP32 {
		m.packBack(s)
	}
	if err := s.Sync(context.Background()); err != nil {
		panic(err) // every view above was allocated here with these sizes
	}
}

// packBack packs the weights for the products that carry gradients back.
func (m *Model) packBack(s kernels.Stream) {
	b, c := m.backend, m.Config
	for l, w := range m.weights.layers {
		for _, x := range c.matrices(&m.packed.back[l], w) {
			b.PackNN(s, *x.packed, x.weights, x.k, x.n)
		}
	}
	b.PackNN(s, m.packed.backHead, m.weights.head, c.HiddenSize, c.VocabSize)
}

// prepareBack makes the weights that Backward needs, at its first call.
func (m *Model) prepareBack(ctx context.Context) error {
	p := &m.packed
	p.backMu.Lock()
	defer p.backMu.Unlock()
	if p.back != nil {
		return nil
	}
	back, backHead := make([]packedLayer, m.Config.Layers), m.weights.head
	all := m.allMatrices(back, &backHead)
	if m.precision == PrecisionFP32 {
		for _, x := range all {
			*x.packed = x.weights
		}
		p.back, p.backHead = back, backHead
		return nil
	}
	if err := m.take(all, true); err != nil {
		return err
	}
	p.back, p.backHead = back, backHead
	s := m.backend.NewStream(kernels.StreamOptions{})
	m.packBack(s)
	return s.Sync(ctx)
}
