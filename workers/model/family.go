package model

import (
	"fmt"
	"slices"
	"strings"
)

// Family is a published decoder architecture, by the model_type of its config.json. The empty Family is Qwen3.
type Family string

// families are the architectures that can be read, trained and written.
var families = []family{qwen3, qwen2, llama}

// family is what tells an architecture from the others. They share the rest: embedding, pre-norm layers of rotary attention with
// grouped keys and values and of SwiGLU, final norm, head.
type family struct {
	name         Family
	architecture string // the entry of "architectures"
	headNorms    bool   // queries and keys are normalised head by head
	qkvBias      bool   // query, key and value projections always have biases
	defaults     defaults
	keys         []string // the keys of config.json that it understands beyond commonKeys
}

// defaults are what a config.json means that does not name a key; 0 is "must be named".
type defaults struct {
	maxPosition  int
	headDim      int // 0: hidden_size/num_attention_heads
	theta        float64
	kvHeadsEqual bool // as many key-value heads as query heads
}

// has reports whether the family understands a key of config.json that not all do.
func (f *family) has(key string) bool { return slices.Contains(f.keys, key) }

// options refuses what the family does not have.
func (f *family) options(c Config) error {
	for _, o := range []struct {
		key string
		on  bool
	}{{"attention_bias", c.AttentionBias}, {"mlp_bias", c.MLPBias}} {
		if o.on && !f.has(o.key) {
			return fmt.Errorf("%s is true, want false: %s has no such option", o.key, f.name)
		}
	}
	return nil
}

// known returns the family of a configuration.
func (f Family) known() (*family, error) {
	if f == "" {
		f = Qwen3
	}
	names := make([]string, len(families))
	for i := range families {
		if families[i].name == f {
			return &families[i], nil
		}
		names[i] = string(families[i].name)
	}
	return nil, fmt.Errorf("model_type is %q, supported are %s", f, strings.Join(names, ", "))
}

// byArchitecture finds the family of a config.json by its architectures and model_type, which must not contradict each other.
func byArchitecture(architectures []string, modelType string) (*family, error) {
	var names []string
	for i := range families {
		f := &families[i]
		if slices.Contains(architectures, f.architecture) {
			if modelType != "" && modelType != string(f.name) {
				return nil, fmt.Errorf("model_type is %q, want %q, to which architectures %q belongs", modelType, f.name, architectures)
			}
			return f, nil
		}
		names = append(names, f.architecture)
	}
	return nil, fmt.Errorf("architectures is %q, supported are %s", architectures, strings.Join(names, ", "))
}

// headNorms reports whether queries and keys are normalised head by head.
func (c Config) headNorms() bool {
	f, err := c.Family.known()
	return err == nil && f.headNorms
}

// qkvBias reports whether the query, key and value projections have biases.
func (c Config) qkvBias() bool {
	f, err := c.Family.known()
	return c.AttentionBias || err == nil && f.qkvBias
}
