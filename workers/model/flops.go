package model

// The counts of this file follow Chowdhery et al. 2022 (PaLM), appendix B: a multiplication and an addition are two operations, a weight
// matrix costs two for each of its elements and token, and the backward pass twice the forward one. Norms, activations, softmax,
// rotary angles, biases and the embedding's row are left out. Unlike there, attention is counted as it is computed: causal.

// productElements is the number of elements of all weight matrices that a token is multiplied by: the layers' and the head's, tied or not.
func (c Config) productElements() int {
	d, g := c.HiddenSize, c.geometry()
	layer := g.QKV()*d + c.Heads*c.HeadDim*d + 3*d*c.IntermediateSize
	return c.Layers*layer + c.VocabSize*d
}

// TokenFLOPs are the operations of the forward pass for one token that attends to context positions, itself included:
// 2 N + 4 layers heads head_dim context, with N the elements of all products.
func (c Config) TokenFLOPs(context int) float64 {
	return 2*float64(c.productElements()) + 4*float64(c.Layers)*float64(c.Heads*c.HeadDim)*float64(context)
}

// SequenceFLOPs are the operations of the forward pass over a sequence of n tokens from its beginning.
func (c Config) SequenceFLOPs(n int) float64 {
	attention := c.TokenFLOPs(1) - c.TokenFLOPs(0)
	return float64(n)*c.TokenFLOPs(0) + attention*float64(n)*float64(n+1)/2
}

// TrainFLOPs are the operations of forward and backward over a sequence of n tokens: 6 N n + 6 layers heads head_dim n (n+1). As
// usual for utilisation, what recomputation adds is not counted.
func (c Config) TrainFLOPs(n int) float64 { return 3 * c.SequenceFLOPs(n) }
