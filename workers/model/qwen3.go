package model

import "slices"

// Qwen3 is the dense Qwen3 family: queries and keys are normalised head by head, head_dim stands by itself.
const Qwen3 Family = "qwen3"

var qwen3 = family{
	name: Qwen3, architecture: "Qwen3ForCausalLM", headNorms: true, defaults: defaults{maxPosition: 32768, headDim: 128},
	keys: slices.Concat(slidingKeys, []string{"attention_bias"}),
}
