package model

// Qwen3 is the dense Qwen3 family: queries and keys are normalised head by head, head_dim stands by itself.
const Qwen3 Family = "qwen3"

var qwen3 = family{
	name: Qwen3, architecture: "Qwen3ForCausalLM", headNorms: true, maxPosition: 32768, headDim: 128,
	keys: []string{"attention_bias"},
}
