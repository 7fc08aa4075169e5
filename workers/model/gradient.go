package model

import (
	"fmt"

	"github.com/restar-rl/restar/kernels"
)

// Gradient is a model-shaped sum over tokens. For tied embeddings the sums of the two uses of the matrix are kept apart until
// Tensors joins them: each then continues over calls of Backward on its own.
type Gradient struct {
	config    Config
	data      []float32
	tensors   tensors
	embedding kernels.View
	scattered []float32 // the embedding's part when tied, else nil
	joined    []float32
	err       error // why there is no memory; Backward reports it
}

// NewGradient returns a zero gradient for m.
func NewGradient(m *Model) *Gradient {
	g := &Gradient{config: m.Config, data: make([]float32, len(m.data))}
	var all kernels.View
	if all, g.err = m.backend.Wrap(g.data); g.err != nil {
		return g
	}
	g.tensors = m.Config.shape(all)
	g.embedding = g.tensors.embed
	if m.Config.TieWordEmbeddings {
		n := m.Config.VocabSize * m.Config.HiddenSize
		g.scattered, g.joined = make([]float32, n), make([]float32, n)
		g.embedding, g.err = m.backend.Wrap(g.scattered)
	}
	return g
}

// Zero sets the sum to +0.
func (g *Gradient) Zero() {
	clear(g.data)
	clear(g.scattered)
}

// Add adds another gradient, element by element. Adding one of another configuration is a programming error and panics.
func (g *Gradient) Add(o *Gradient) {
	if len(g.data) != len(o.data) || len(g.scattered) != len(o.scattered) {
		panic(fmt.Sprintf("gradient of %d elements added to one of %d", len(o.data), len(g.data)))
	}
	addTo(g.data, o.data)
	addTo(g.scattered, o.scattered)
}

func addTo(dst, src []float32) {
	for i, v := range src {
		dst[i] += v
	}
}

// Tensors lists the gradient in the order of Model.Params. The memory is the gradient's own and is valid until the next Backward, Zero,
// Add or Tensors.
func (g *Gradient) Tensors() []Tensor {
	ps := g.config.cut(g.data)
	ts := make([]Tensor, len(ps))
	for i, p := range ps {
		ts[i] = Tensor(p)
	}
	if g.scattered != nil {
		copy(g.joined, ts[0].Data)
		addTo(g.joined, g.scattered)
		ts[0].Data = g.joined
	}
	return ts
}
