package model

import (
	"fmt"

	"github.com/restar-rl/restar/kernels"
)

// Param is one weight tensor of a model, under its Hugging Face name. Data is the live memory.
type Param struct {
	Name  string
	Shape []int
	Data  []float32
}

// layout lists the tensors of a configuration in the order in which they lie in one allocation. Query, key and value weights
// are neighbours, and so are gate and up: row-wise concatenation is one matrix.
func (c Config) layout() []Param {
	d, q, kv, ff := c.HiddenSize, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, c.IntermediateSize
	ps := []Param{{Name: "model.embed_tokens.weight", Shape: []int{c.VocabSize, d}}}
	for l := range c.Layers {
		for _, t := range []Param{
			{Name: "self_attn.q_proj", Shape: []int{q, d}}, {Name: "self_attn.k_proj", Shape: []int{kv, d}},
			{Name: "self_attn.v_proj", Shape: []int{kv, d}}, {Name: "self_attn.o_proj", Shape: []int{d, q}},
			{Name: "mlp.gate_proj", Shape: []int{ff, d}}, {Name: "mlp.up_proj", Shape: []int{ff, d}}, {Name: "mlp.down_proj", Shape: []int{d, ff}},
			{Name: "self_attn.q_norm", Shape: []int{c.HeadDim}}, {Name: "self_attn.k_norm", Shape: []int{c.HeadDim}},
			{Name: "input_layernorm", Shape: []int{d}}, {Name: "post_attention_layernorm", Shape: []int{d}},
		} {
			t.Name = fmt.Sprintf("model.layers.%d.%s.weight", l, t.Name)
			ps = append(ps, t)
		}
	}
	ps = append(ps, Param{Name: "model.norm.weight", Shape: []int{d}})
	if !c.TieWordEmbeddings {
		ps = append(ps, Param{Name: "lm_head.weight", Shape: []int{c.VocabSize, d}})
	}
	return ps
}

func (p Param) elements() int { return Tensor{Shape: p.Shape}.Elements() }

// Elements is the number of weights of the configuration.
func (c Config) Elements() int {
	n := 0
	for _, p := range c.layout() {
		n += p.elements()
	}
	return n
}

// cut gives each tensor of the layout its part of one allocation.
func (c Config) cut(data []float32) []Param {
	ps := c.layout()
	for i := range ps {
		n := ps[i].elements()
		ps[i].Data, data = data[:n:n], data[n:]
	}
	return ps
}

// layer holds the tensors of one decoder layer.
type layer struct {
	qkv, out, gateUp, down                 kernels.View
	qNorm, kNorm, inputNorm, postAttention kernels.View
}

// tensors is a model-shaped set of views: the weights, or their gradient.
type tensors struct {
	embed  kernels.View
	layers []layer
	norm   kernels.View
	head   kernels.View // the embedding when tied
}

// shape cuts a view of the whole allocation into tensors, in the order of layout.
func (c Config) shape(all kernels.View) tensors {
	d, q, ff := c.HiddenSize, c.Heads*c.HeadDim, c.IntermediateSize
	take := func(n int) kernels.View {
		v := all.Slice(0, n)
		all = all.Slice(n, all.Len)
		return v
	}
	t := tensors{embed: take(c.VocabSize * d), layers: make([]layer, c.Layers)}
	for l := range t.layers {
		y := &t.layers[l]
		y.qkv, y.out = take(c.geometry().QKV()*d), take(d*q)
		y.gateUp, y.down = take(2*ff*d), take(d*ff)
		y.qNorm, y.kNorm = take(c.HeadDim), take(c.HeadDim)
		y.inputNorm, y.postAttention = take(d), take(d)
	}
	t.norm, t.head = take(d), t.embed
	if !c.TieWordEmbeddings {
		t.head = take(c.VocabSize * d)
	}
	return t
}

func (c Config) geometry() kernels.Geometry {
	return kernels.Geometry{Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.HeadDim}
}
