package model

// Llama is the Llama family (Llama 1 to 3, SmolLM2): no norms of heads, biases only where the configuration asks for them.
const Llama Family = "llama"

var llama = family{
	name: Llama, architecture: "LlamaForCausalLM", defaults: defaults{maxPosition: 2048, theta: 10000, kvHeadsEqual: true},
	keys: []string{"attention_bias", "mlp_bias"},
}
