package model

import (
	"context"
	"errors"
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
	touched   touchedRows
	fresh     bool  // the sum is +0, whatever lies in data: the next Backward replaces it
	joined    bool  // scattered has been added to its tensor
	err       error // why there is no memory, or an operation's failure
}

// NewGradient returns a zero gradient for m.
func NewGradient(m *Model) *Gradient {
	g := &Gradient{config: m.Config, backend: m.backend, data: make([]float32, len(m.data)), fresh: true}
	if g.all, g.err = m.backend.Wrap(g.data); g.err != nil {
		return g
	}
	g.tensors = m.Config.shape(g.all)
	g.embedding = g.tensors.embed
	if m.Config.TieWordEmbeddings {
		g.scattered = make([]float32, m.Config.VocabSize*m.Config.HiddenSize)
		g.embedding, g.err = m.backend.Wrap(g.scattered)
		g.touched.seen = make([]bool, m.Config.VocabSize)
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
		for _, v := range g.rowsOf(&g.touched, g.embedding) {
			b.Clear(s, v)
		}
	})
	g.touched.reset()
	g.fresh, g.joined = true, false
}

// settle makes the memory hold the sum.
func (g *Gradient) settle(b kernels.Backend, s kernels.Stream) {
	if g.fresh {
		b.Clear(s, g.all)
		g.fresh = false
	}
}

// begin clears what Backward adds to row by row; it replaces the rest of a fresh gradient.
func (g *Gradient) begin(s kernels.Stream) {
	if !g.fresh {
		return
	}
	vectors := []kernels.View{g.tensors.norm}
	if g.scattered == nil {
		vectors = append(vectors, g.embedding)
	}
	for _, y := range g.tensors.layers {
		vectors = append(vectors, y.qNorm, y.kNorm, y.inputNorm, y.postAttention, y.qkvBias, y.outBias, y.gateUpBias, y.downBias)
	}
	for _, v := range vectors {
		if !v.Absent() {
			g.backend.Clear(s, v)
		}
	}
}

// Add adds another gradient, element by element. Adding one of another configuration, or after Tensors, is a programming error and panics.
func (g *Gradient) Add(o *Gradient) {
	if len(g.data) != len(o.data) || len(g.scattered) != len(o.scattered) || g.joined || o.joined {
		panic(fmt.Sprintf("gradient of %d elements (listed: %t) added to one of %d (listed: %t)", len(o.data), o.joined, len(g.data), g.joined))
	}
	g.do(func(b kernels.Backend, s kernels.Stream) {
		g.settle(b, s)
		o.settle(b, s)
		b.Add(s, g.all, o.all)
		to := g.rowsOf(&o.touched, g.embedding)
		for i, from := range g.rowsOf(&o.touched, o.embedding) {
			b.Add(s, to[i], from)
		}
	})
	g.touched.add(&o.touched)
}

// rowsOf cuts the touched rows out of an embedding's part, or returns all of it when they are many. It is empty if there is no such part.
func (g *Gradient) rowsOf(t *touchedRows, embedding kernels.View) []kernels.View {
	const many = 4 // a fourth of the rows
	if g.scattered == nil {
		return nil
	}
	if t.all || len(t.rows) > len(t.seen)/many {
		return []kernels.View{embedding}
	}
	d := g.config.HiddenSize
	out := make([]kernels.View, len(t.rows))
	for i, r := range t.rows {
		out[i] = embedding.Slice(int(r)*d, (int(r)+1)*d)
	}
	return out
}

// Tensors joins what belongs together and lists the gradient in the order of Model.Params. The memory is the gradient's own and is
// valid until Zero, before which nothing can be added any more.
func (g *Gradient) Tensors() []Tensor {
	g.do(func(b kernels.Backend, s kernels.Stream) {
		g.settle(b, s)
		if g.scattered != nil && !g.joined {
			b.Add(s, g.tensors.embed, g.embedding)
		}
		b.Download(s, g.data, g.all)
	})
	g.joined = true
	ps := g.config.cut(g.data)
	ts := make([]Tensor, len(ps))
	for i, p := range ps {
		ts[i] = Tensor(p)
	}
	return ts
}

// open reports why nothing can be added, if so.
func (g *Gradient) open() error {
	if g.err != nil {
		return fmt.Errorf("gradient: %w", g.err)
	}
	if g.joined {
		return errors.New("gradient: its tensors have been listed, want Zero before more is added")
	}
	return nil
}

// Sums lists, for each tensor in the order of Model.Params, the sums that it consists of, sharing their memory: one, or two for a tied
// embedding. Sums of several gradients are added before Tensors joins them.
func (g *Gradient) Sums() [][][]float32 {
	g.do(g.settle)
	g.touched.all = true
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
