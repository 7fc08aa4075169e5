package model

// Qwen2 is the Qwen2 and Qwen2.5 family: biases on queries, keys and values, no norms of heads.
const Qwen2 Family = "qwen2"

var qwen2 = family{
	name: Qwen2, architecture: "Qwen2ForCausalLM", qkvBias: true, defaults: defaults{maxPosition: 32768, theta: 10000},
	keys: slidingKeys,
}
