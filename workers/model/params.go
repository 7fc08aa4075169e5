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
// are neighbours, and so are gate and up: row-wise concatenation is one matrix, and their biases are one row.
func (c Config) layout() []Param {
	d := c.HiddenSize
	ps := []Param{{Name: "model.embed_tokens.weight", Shape: []int{c.VocabSize, d}}}
	block := c.blockLayout()
	for l := range c.Layers {
		for _, t := range block {
			ps = append(ps, Param{Name: fmt.Sprintf("model.layers.%d.%s", l, t.Name), Shape: t.Shape})
		}
	}
	ps = append(ps, Param{Name: "model.norm.weight", Shape: []int{d}})
	if !c.TieWordEmbeddings {
		ps = append(ps, Param{Name: "lm_head.weight", Shape: []int{c.VocabSize, d}})
	}
	return ps
}

// blockLayout is the part of layout that one decoder layer takes, in the order of Config.takeLayer.
func (c Config) blockLayout() []Param {
	d, q, kv, ff := c.HiddenSize, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, c.IntermediateSize
	ps := []Param{
		{Name: "self_attn.q_proj.weight", Shape: []int{q, d}}, {Name: "self_attn.k_proj.weight", Shape: []int{kv, d}},
		{Name: "self_attn.v_proj.weight", Shape: []int{kv, d}}, {Name: "self_attn.o_proj.weight", Shape: []int{d, q}},
		{Name: "mlp.gate_proj.weight", Shape: []int{ff, d}}, {Name: "mlp.up_proj.weight", Shape: []int{ff, d}},
		{Name: "mlp.down_proj.weight", Shape: []int{d, ff}},
	}
	if c.headNorms() {
		ps = append(ps, Param{Name: "self_attn.q_norm.weight", Shape: []int{c.HeadDim}}, Param{Name: "self_attn.k_norm.weight", Shape: []int{c.HeadDim}})
	}
	ps = append(ps, Param{Name: "input_layernorm.weight", Shape: []int{d}}, Param{Name: "post_attention_layernorm.weight", Shape: []int{d}})
	if c.qkvBias() {
		ps = append(ps, Param{Name: "self_attn.q_proj.bias", Shape: []int{q}}, Param{Name: "self_attn.k_proj.bias", Shape: []int{kv}},
			Param{Name: "self_attn.v_proj.bias", Shape: []int{kv}})
	}
	if c.AttentionBias {
		ps = append(ps, Param{Name: "self_attn.o_proj.bias", Shape: []int{d}})
	}
	if c.MLPBias {
		ps = append(ps, Param{Name: "mlp.gate_proj.bias", Shape: []int{ff}}, Param{Name: "mlp.up_proj.bias", Shape: []int{ff}},
			Param{Name: "mlp.down_proj.bias", Shape: []int{d}})
	}
	return ps
}

func (p Param) elements() int { return Tensor{Shape: p.Shape}.Elements() }

// Elements is the number of weights of the configuration; a tied head counts once.
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

// layer holds the tensors of one decoder layer. What the configuration does not have is absent.
type layer struct {
	qkv, out, gateUp, down                 kernels.View
	qNorm, kNorm, inputNorm, postAttention kernels.View
	qkvBias, outBias, gateUpBias, downBias kernels.View
}

// tensors is a model-shaped set of views: the weights, or their gradient.
type tensors struct {
	embed  kernels.View
	layers []layer
	norm   kernels.View
	head   kernels.View // the embedding when tied
}

// taker cuts views off the front of one.
type taker struct{ rest kernels.View }

func (t *taker) take(n int) kernels.View {
	v := t.rest.Slice(0, n)
	t.rest = t.rest.Slice(n, t.rest.Len)
	return v
}

// shape cuts a view of the whole allocation into tensors, in the order of layout.
func (c Config) shape(all kernels.View) tensors {
	from := &taker{all}
	t := tensors{embed: from.take(c.VocabSize * c.HiddenSize), layers: make([]layer, c.Layers)}
	for l := range t.layers {
		t.layers[l] = c.takeLayer(from)
	}
	t.norm, t.head = from.take(c.HiddenSize), t.embed
	if !c.TieWordEmbeddings {
		t.head = from.take(c.VocabSize * c.HiddenSize)
	}
	return t
}

func (c Config) takeLayer(from *taker) (y layer) {
	d, q, ff, qkv := c.HiddenSize, c.Heads*c.HeadDim, c.IntermediateSize, c.geometry().QKV()
	y.qkv, y.out = from.take(qkv*d), from.take(d*q)
	y.gateUp, y.down = from.take(2*ff*d), from.take(d*ff)
	if c.headNorms() {
		y.qNorm, y.kNorm = from.take(c.HeadDim), from.take(c.HeadDim)
	}
	y.inputNorm, y.postAttention = from.take(d), from.take(d)
	if c.qkvBias() {
		y.qkvBias = from.take(qkv)
	}
	if c.AttentionBias {
		y.outBias = from.take(d)
	}
	if c.MLPBias {
		y.gateUpBias, y.downBias = from.take(2*ff), from.take(d)
	}
	return y
}

func (c Config) geometry() kernels.Geometry {
	return kernels.Geometry{Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.HeadDim}
}
