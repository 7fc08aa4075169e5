package model

import (
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestTrap18BothPlacesOfTheRotaryBaseAreRead(t *testing.T) {
	for folder, want := range map[string]float64{"qwen3": 10000, "qwen3-untied": 1000000} {
		c, err := ReadConfig("testdata/" + folder + "/config.json")
		if err != nil {
			t.Fatal(err)
		}
		if c.RopeTheta != want || *c.EOSTokenID != 3 || !slices.Equal(c.MoreEOSTokenIDs, []int32{4}) || c.BOSTokenID != nil {
			t.Errorf("%s: read %+v, want a rotary base of %v and the eos ids 3 and 4", folder, c, want)
		}
	}
}

func TestTrap18OldAndNewPlacesOfTheRopeScalingMeanTheSame(t *testing.T) {
	old := `"rope_theta": 500000.0, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}`
	want := RopeScaling{Kind: RopeLlama3, Factor: 32, OriginalPosition: 8192, LowFreqFactor: 1, HighFreqFactor: 4}
	for _, rope := range []string{
		old,
		`"rope_parameters": {"rope_theta": 500000.0, "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}`,
		old + `, "rope_parameters": {"rope_theta": 500000, "factor": 32, "high_freq_factor": 4, "low_freq_factor": 1, "original_max_position_embeddings": 8192, "rope_type": "llama3"}`,
		strings.Replace(old, "rope_type", "type", 1),
	} {
		c, err := ParseConfig(llamaFile(rope))
		if err != nil {
			t.Fatal(err)
		}
		if c.RopeTheta != 500000 || c.RopeScaling != want {
			t.Errorf("%s: read base %v and %+v, want 500000 and %+v", rope, c.RopeTheta, c.RopeScaling, want)
		}
	}
}

func TestYaRNTakesThePapersValuesForWhatAFileDoesNotName(t *testing.T) {
	c, err := ParseConfig(llamaFile(`"rope_scaling": {"type": "yarn", "factor": 4}`))
	if err != nil {
		t.Fatal(err)
	}
	want := RopeScaling{Kind: RopeYaRN, Factor: 4, OriginalPosition: 1024, BetaFast: 32, BetaSlow: 1, AttentionFactor: 0.1*math.Log(4) + 1}
	if c.RopeScaling != want || c.RopeTheta != 10000 {
		t.Errorf("read %+v and base %v, want %+v and Llama's 10000", c.RopeScaling, c.RopeTheta, want)
	}
}

// llamaFile is a small Llama config.json with more members.
func llamaFile(more string) []byte {
	return []byte(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 48, "hidden_size": 24, "intermediate_size": 40,
		"num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 1024, ` + more + `}`)
}

func TestWhatAFileDoesNotNameHasItsFamilysDefault(t *testing.T) {
	c, err := ParseConfig(llamaFile(`"head_dim": null, "sliding_window": null`))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Family: Llama, VocabSize: 48, HiddenSize: 24, IntermediateSize: 40, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: 6, MaxPosition: 1024,
		RMSNormEps: 1e-6, RopeTheta: 10000, InitializerRange: 0.02}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("read %+v, want %+v", c, want)
	}
}

func TestAConfigOfEveryFamilyReadsBackAsItWasWritten(t *testing.T) {
	for name, c := range everyFamily() {
		if c.Family == "" {
			c.Family = Qwen3
		}
		bos, eos := int32(0), int32(7)
		c.BOSTokenID, c.EOSTokenID = &bos, &eos
		for _, more := range [][]int32{nil, {9, 2}} {
			c.MoreEOSTokenIDs = more
			raw, err := c.encode("bfloat16")
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParseConfig(raw)
			if err != nil || !reflect.DeepEqual(got, c) {
				t.Errorf("%s: read %+v (%v), want %+v", name, got, err, c)
			}
		}
	}
}

func TestTrap18AConfigThatAsksForOtherMathematicsIsRefusedByItsKey(t *testing.T) {
	raw, err := os.ReadFile("testdata/qwen3/config.json")
	if err != nil {
		t.Fatal(err)
	}
	const size = `"vocab_size": 48`
	for _, c := range []struct {
		old, replacement string
		names            []string // key, value, and what would do
	}{
		{`"rope_type": "default"`, `"rope_type": "ntk"`, []string{"rope_parameters.rope_type", "ntk", "default, linear, llama3, yarn"}},
		{`"rope_type": "default"`, `"rope_type": "dynamic", "factor": 2`, []string{"rope_parameters.rope_type", "dynamic", "length"}},
		{`"rope_type": "default"`, `"rope_type": "longrope", "factor": 2`, []string{"rope_parameters.rope_type", "longrope", "length"}},
		{`"rope_type": "default"`, `"rope_type": "default", "factor": 4`, []string{"rope_parameters.factor", "default"}},
		{`"rope_type": "default"`, `"rope_type": "yarn"`, []string{"rope_parameters", "factor is missing"}},
		{`"rope_type": "default"`, `"rope_type": "yarn", "factor": 0.5`, []string{"factor is 0.5", "at least 1"}},
		{`"rope_type": "default"`, `"rope_type": "yarn", "factor": 2, "beta_slow": 40`, []string{"beta_fast is 32", "beta_slow (40)"}},
		{`"rope_type": "default"`, `"rope_type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 1`, []string{"high_freq_factor is 1", "4"}},
		{`"rope_type": "default"`, `"rope_type": "linear", "factor": 2, "type": "yarn"`, []string{"rope_type", "linear", "yarn", "agree"}},
		{`"rope_type": "default"`, `"rope_type": "linear", "factor": 2, "long_factor": [1]`, []string{"rope_parameters.long_factor", "linear"}},
		{`"rope_theta": 10000.0,`, ``, []string{"rope_theta"}},
		{`"rope_theta": 10000.0,`, `"rope_theta": 1.0,`, []string{"rope_theta is 1"}},
		{size, size + `, "rope_theta": 5`, []string{"rope_theta is 5", "10000"}},
		{size, size + `, "rope_scaling": {"type": "linear", "factor": 2}`, []string{"rope_scaling", "rope_parameters", "agree"}},
		{size, size + `, "rope_scaling": {"type": "linear"}`, []string{"rope_scaling", "factor"}},
		{size, size + `, "logit_scale": 2`, []string{"logit_scale is 2", "qwen3"}},
		{size, size + `, "quantization_config": {"bits": 4}`, []string{"quantization_config", "bits"}},
		{size, size + `, "mlp_bias": true`, []string{"mlp_bias is true"}},
		{size, size + `, "partial_rotary_factor": 0.5`, []string{"partial_rotary_factor is 0.5", "1"}},
		{size, size + `, "rope_interleaved": true`, []string{"rope_interleaved is true", "false"}},
		{size, size + `, "vocab_size": 50`, []string{"vocab_size", "twice"}},
		{size, `"vocab_size": 0`, []string{"vocab_size is 0"}},
		{size, `"vocab_size": "48"`, []string{`vocab_size is "48"`}},
		{size, `"vocab_size": 4000000000`, []string{"vocab_size is 4000000000"}},
		{`"hidden_act": "silu"`, `"hidden_act": "gelu"`, []string{`hidden_act is "gelu"`, "silu"}},
		{`"max_window_layers": 28`, `"max_window_layers": 1, "use_sliding_window": true`, []string{"use_sliding_window", "true", "false"}},
		{`"full_attention"`, `"sliding_attention"`, []string{"layer_types[0]", "sliding_attention"}},
		{`"model_type": "qwen3"`, `"model_type": "qwen2"`, []string{`model_type is "qwen2"`, "qwen3"}},
		{`"num_key_value_heads": 2`, `"num_key_value_heads": 3`, []string{"num_key_value_heads"}},
		{`"head_dim": 8`, `"head_dim": 7`, []string{"head_dim"}},
		{"Qwen3ForCausalLM", "MistralForCausalLM", []string{"architectures", "MistralForCausalLM", "Qwen3ForCausalLM", "Qwen2ForCausalLM", "LlamaForCausalLM"}},
		{`"use_cache": true`, `"use_cache": true} {`, []string{"after its end"}},
	} {
		changed := strings.Replace(string(raw), c.old, c.replacement, 1)
		if c.replacement == `"max_window_layers": 1, "use_sliding_window": true` {
			changed = strings.Replace(changed, `"use_sliding_window": false,`, "", 1)
		}
		if changed == string(raw) {
			t.Fatalf("%s is not in the file", c.old)
		}
		_, err := ParseConfig([]byte(changed))
		for _, name := range c.names {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("with %s the error is %v, want one that names %s", c.replacement, err, name)
			}
		}
	}
}

func TestKeysWithoutInfluenceAreSkipped(t *testing.T) {
	for _, key := range ignoredKeys {
		if _, err := ParseConfig(llamaFile(`"` + key + `": "anything"`)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestAnOptionOfAnotherFamilyIsRefused(t *testing.T) {
	c := small(true)
	c.Family, c.AttentionBias = Qwen2, true
	if _, err := New(c, 1); err == nil || !strings.Contains(err.Error(), "attention_bias") {
		t.Errorf("error is %v, want one that names attention_bias", err)
	}
	c.Family = "mamba"
	if _, err := New(c, 1); err == nil || !strings.Contains(err.Error(), "mamba") {
		t.Errorf("error is %v, want one that names mamba", err)
	}
}

func FuzzConfig(f *testing.F) {
	for _, name := range []string{"qwen3/config.json", "qwen2/config.json", "llama/config.json", "published/Qwen3-14B.json", "published/Llama-3.2-1B.json", "published/SmolLM2-135M.json"} {
		raw, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add(llamaFile(`"rope_scaling": {"type": "yarn", "factor": 4}`))
	f.Add([]byte(`{`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`{"model_type": "llama", "rope_scaling": []}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := ParseConfig(raw)
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("accepted a configuration that is not valid: %v", err)
		}
		if c.Elements() < 1 || !(c.TrainFLOPs(c.MaxPosition) > 0) {
			t.Errorf("counts of %+v overflowed", c)
		}
	})
}
