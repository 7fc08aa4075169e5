package model

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/kernels"
)

// Gradient is a model-shaped sum over tokens. For tied embeddings the sums of the two uses of the matrix are kept apart until
// Tensors joins them: each then continues over calls of Backward on its own.
type Gradient struct {
	config    Config
	backend   kernels.Backend
	data      []float32
	all       kernels.View
	tensors   tensors
	embedding kernels.View
	scattered []float32 // the embedding's part when tied, else nil
	joined    []float32 // made by Tensors
	err       error     // why there is no memory, or an operation's failure
}

// NewGradient returns a zero gradient for m.
func NewGradient(m *Model) *Gradient {
	g := &Gradient{config: m.Config, backend: m.backend, data: make([]float32, len(m.data))}
	if g.all, g.err = m.backend.Wrap(g.data); g.err != nil {
		return g
	}
	g.tensors = m.Config.shape(g.all)
	g.embedding = g.tensors.embed
	if m.Config.TieWordEmbeddings {
		g.scattered = make([]float32, m.Config.VocabSize*m.Config.HiddenSize)
		g.embedding, g.err = m.backend.Wrap(g.scattered)
	}
	return g
}

// do runs operations on the gradient and waits for them.
func (g *Gradient) do(operations func(b kernels.Backend, s kernels.Stream)) {
	if g.err != nil {
		return
	}
	s := g.backend.NewStream(kernels.StreamOptions{})
	operations(g.backend, s)
	g.err = s.Sync(context.Background())
}

// Err is why the gradient is of no use: its device had no memory or failed. Backward reports it too.
func (g *Gradient) Err() error { return g.err }

// Zero sets the sum to +0.
func (g *Gradient) Zero() {
	g.do(func(b kernels.Backend, s kernels.Stream) {
		b.Clear(s, g.all)
		if g.scattered != nil {
			b.Clear(s, g.embedding)
		}
	})
}

// Add adds another gradient, element by element. Adding one of another configuration is a programming error and panics.
func (g *Gradient) Add(o *Gradient) {
	if len(g.data) != len(o.data) || len(g.scattered) != len(o.scattered) {
		panic(fmt.Sprintf("gradient of %d elements added to one of %d", len(o.data), len(g.data)))
	}
	g.do(func(b kernels.Backend, s kernels.Stream) {
		b.Add(s, g.all, o.all)
		if g.scattered != nil {
			b.Add(s, g.embedding, o.embedding)
		}
	})
}

// Tensors lists the gradient in the order of Model.Params. The memory is the gradient's own and is valid until the next Backward, Zero,
// Add or Tensors.
func (g *Gradient) Tensors() []Tensor {
	g.do(func(b kernels.Backend, s kernels.Stream) { b.Download(s, g.data, g.all) })
	ps := g.config.cut(g.data)
	ts := make([]Tensor, len(ps))
	for i, p := range ps {
		ts[i] = Tensor(p)
	}
	if g.scattered != nil {
		g.join(ts[0].Data)
		ts[0].Data = g.joined
	}
	return ts
}

// join sets joined to the sum of a tied matrix's two parts.
func (g *Gradient) join(head []float32) {
	if g.joined == nil {
		g.joined = make([]float32, len(head))
	}
	sum, err := g.backend.Wrap(g.joined)
	if g.err == nil {
		g.err = err
	}
	g.do(func(b kernels.Backend, s kernels.Stream) {
		b.Copy(s, sum, g.tensors.embed)
		b.Add(s, sum, g.embedding)
		b.Download(s, g.joined, sum)
	})
}

// Sums lists, for each tensor in the order of Model.Params, the sums that it consists of, sharing their memory: one, or two for a tied
// embedding. Sums of several gradients are added before Tensors joins them.
func (g *Gradient) Sums() [][][]float32 {
	ps := g.config.cut(g.data)
	out := make([][][]float32, len(ps))
	for i, p := range ps {
		out[i] = [][]float32{p.Data}
	}
	if g.scattered != nil {
		out[0] = append(out[0], g.scattered)
	}
	return out
}
