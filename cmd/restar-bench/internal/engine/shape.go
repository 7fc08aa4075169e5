// Package engine measures kernels, training step and sampling of restar beside PyTorch, oneDNN and llama.cpp.
//
// Every ratio is of two measurements of the same run that took turns; each side's figure is the best of its turns, since whatever
// else the machine does can only add time. All shapes are given to both sides by this package.
package engine

import (
	"slices"
	"strings"

	"github.com/restar-rl/restar/workers/model"
)

// Shape is a decoder and the work it is measured with, as the peers' programs read it.
type Shape struct {
	Name      string `json:"name"`
	Vocab     int    `json:"vocab"`
	Hidden    int    `json:"hidden"`
	Layers    int    `json:"layers"`
	Heads     int    `json:"heads"`
	KVHeads   int    `json:"kv_heads"`
	HeadDim   int    `json:"head_dim"`
	FF        int    `json:"ff"`
	Positions int    `json:"positions"`
	Sequences int    `json:"sequences"` // of a training step
	Tokens    int    `json:"tokens"`    // of each of them
	Batch     int    `json:"batch"`     // sequences sampled together
	Prompt    int    `json:"prompt"`    // ids of each prompt
	New       int    `json:"new"`       // ids to sample for each
	Precision string `json:"precision"`
}

// shapes are the quickstart's model, one of about ten million weights, and SmolLM2-135M's shape.
var shapes = []Shape{
	{Name: "1m", Vocab: 1024, Hidden: 128, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 32, FF: 384, Positions: 1024, Sequences: 16, Tokens: 256},
	{Name: "10m", Vocab: 8192, Hidden: 256, Layers: 8, Heads: 4, KVHeads: 2, HeadDim: 64, FF: 896, Positions: 1024, Sequences: 4, Tokens: 512},
	{Name: "135m", Vocab: 49152, Hidden: 576, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, FF: 1536, Positions: 1024, Sequences: 1, Tokens: 512},
}

// SizeNames lists the shapes for people.
func SizeNames() string {
	var names []string
	for _, s := range shapes {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

func (s Shape) in(precision string) Shape {
	s.Precision = precision
	return s
}

func (s Shape) sampling(batch, prompt, count int) Shape {
	s.Batch, s.Prompt, s.New = batch, prompt, count
	return s
}

func (s Shape) config() model.Config {
	return model.Config{
		VocabSize: s.Vocab, HiddenSize: s.Hidden, IntermediateSize: s.FF, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
		MaxPosition: s.Positions, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.02,
	}
}

// rows is the number of tokens of a training step.
func (s Shape) rows() int { return s.Sequences * s.Tokens }

// product is a matrix product of a training step and how often it occurs. NT is the forward product, NN carries gradients back, TN
// sums the gradient of the weights.
type product struct {
	kind    string
	m, n, k int
	times   int
	head    bool // in fp32 whatever the step's precision is
}

// products lists the products that a training step cannot do without: three for every weight matrix, over all tokens at once.
func (s Shape) products() []product {
	var all []product
	matrix := func(out, in, times int, head bool) {
		all = append(all, product{"NT", s.rows(), out, in, times, head}, product{"NN", s.rows(), in, out, times, head},
			product{"TN", out, in, s.rows(), times, head})
	}
	matrix((s.Heads+2*s.KVHeads)*s.HeadDim, s.Hidden, s.Layers, false)
	matrix(s.Hidden, s.Heads*s.HeadDim, s.Layers, false)
	matrix(2*s.FF, s.Hidden, s.Layers, false)
	matrix(s.Hidden, s.FF, s.Layers, false)
	matrix(s.Vocab, s.Hidden, 1, true)
	return all
}

// precision is what a product is computed in during a step of a precision.
func (p product) precision(step string) string {
	if p.head {
		return fp32
	}
	return step
}

func (p product) flops() float64 { return 2 * float64(p.m) * float64(p.n) * float64(p.k) }

// streamedBytes is the memory of the weights that decoding one token reads in bf16.
func (s Shape) streamedBytes() float64 { return 2 * float64(s.config().Elements()) }

// The precisions.
const (
	fp32 = "fp32"
	bf16 = "bf16"
)

// chosen are the shapes that options ask for.
func (o Options) chosen() []Shape {
	return slices.DeleteFunc(slices.Clone(shapes), func(s Shape) bool { return len(o.Sizes) > 0 && !slices.Contains(o.Sizes, s.Name) })
}
