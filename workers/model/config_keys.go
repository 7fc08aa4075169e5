package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// commonKeys are the keys of config.json that every family understands.
var commonKeys = []string{
	"architectures", "model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
	"num_key_value_heads", "head_dim", "max_position_embeddings", "rms_norm_eps", "rope_theta", "rope_parameters", "rope_scaling",
	"tie_word_embeddings", "initializer_range", "layer_types", "bos_token_id", "eos_token_id", "pad_token_id",
}

// slidingKeys say which layers see a window of positions only; a family that has them is read while none does.
var slidingKeys = []string{"use_sliding_window", "sliding_window", "max_window_layers"}

// ignoredKeys have no influence on the mathematics: bookkeeping of tools, storage of the weights, defaults of text generation, and
// dropout, which neither scoring nor reinforcement learning uses.
var ignoredKeys = []string{
	"_name_or_path", "transformers_version", "transformers.js_config", "_attn_implementation_autoset", "unsloth_fixed", "unsloth_version",
	"torch_dtype", "dtype", "torchscript", "use_cache", "return_dict", "chunk_size_feed_forward", "output_hidden_states", "output_attentions",
	"problem_type", "id2label", "label2id", "finetuning_task", "task_specific_params", "tokenizer_class", "is_llama_config",
	"attention_dropout", "pretraining_tp",
	"do_sample", "temperature", "top_k", "top_p", "repetition_penalty", "max_length", "min_length", "num_beams", "num_return_sequences",
}

// fixedKeys are options of which only these values are computed here.
var fixedKeys = map[string][]any{
	"hidden_act":            {"silu", "swish"},
	"is_encoder_decoder":    {false},
	"add_cross_attention":   {false},
	"rope_interleaved":      {false},
	"use_mrope":             {false},
	"partial_rotary_factor": {1.0},
}

// checkKeys refuses the first key, by name, that could change the mathematics in a way that is not computed here.
func (f *family) checkKeys(file map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(file)) {
		if slices.Contains(commonKeys, key) || f.has(key) || slices.Contains(ignoredKeys, key) {
			continue
		}
		values, ok := fixedKeys[key]
		if !ok {
			return fmt.Errorf("%s is %s: a key that %s does not have and that could change the mathematics; it has %s",
				key, short(file[key]), f.name, strings.Join(slices.Concat(commonKeys, f.keys), ", "))
		}
		var got any
		if err := json.Unmarshal(file[key], &got); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if !slices.ContainsFunc(values, func(v any) bool { return reflect.DeepEqual(v, got) }) {
			return fmt.Errorf("%s is %s, supported is %v", key, short(file[key]), values)
		}
	}
	return nil
}

// short is a value as an error shows it.
func short(raw json.RawMessage) string {
	const most = 60
	if len(raw) > most {
		return string(raw[:most]) + "..."
	}
	return string(raw)
}
