package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Config is the shape of a dense decoder, as a Hugging Face config.json gives it.
type Config struct {
	Family            Family
	VocabSize         int
	HiddenSize        int
	IntermediateSize  int
	Layers            int
	Heads, KVHeads    int
	HeadDim           int
	MaxPosition       int // positions 0 .. MaxPosition-1 exist
	RMSNormEps        float64
	RopeTheta         float64
	RopeScaling       RopeScaling
	AttentionBias     bool // all four projections of attention have biases
	MLPBias           bool // all three projections of the MLP have
	TieWordEmbeddings bool
	InitializerRange  float64 // standard deviation of new weights
	// Ids that a tokenizer gives a meaning; nil when the file names none. They take no part in the mathematics.
	BOSTokenID, EOSTokenID, PadTokenID *int32
}

// defaultMaxPosition and defaultInitializerRange are Qwen3's own defaults.
const (
	defaultMaxPosition      = 32768
	defaultInitializerRange = 0.02
)

// ReadConfig reads and validates a config.json. A key whose meaning is unknown is an error that names it: it could change the mathematics.
func ReadConfig(path string) (Config, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("model config: %w", err)
	}
	c, err := ParseConfig(raw)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// configFile is config.json as far as it has a meaning here.
type configFile struct {
	Architectures      []string        `json:"architectures"`
	ModelType          string          `json:"model_type"`
	VocabSize          int             `json:"vocab_size"`
	HiddenSize         int             `json:"hidden_size"`
	IntermediateSize   int             `json:"intermediate_size"`
	Layers             int             `json:"num_hidden_layers"`
	Heads              int             `json:"num_attention_heads"`
	KVHeads            int             `json:"num_key_value_heads"`
	HeadDim            int             `json:"head_dim"`
	MaxPosition        int             `json:"max_position_embeddings"`
	RMSNormEps         float64         `json:"rms_norm_eps"`
	RopeTheta          *float64        `json:"rope_theta,omitempty"`
	RopeParameters     *ropeParameters `json:"rope_parameters,omitempty"`
	RopeScaling        *ropeParameters `json:"rope_scaling,omitempty"`
	TieWordEmbeddings  bool            `json:"tie_word_embeddings"`
	InitializerRange   float64         `json:"initializer_range"`
	HiddenAct          string          `json:"hidden_act"`
	AttentionBias      bool            `json:"attention_bias"`
	AttentionDropout   float64         `json:"attention_dropout"`
	UseSlidingWindow   bool            `json:"use_sliding_window"`
	LayerTypes         []string        `json:"layer_types,omitempty"`
	BOSTokenID         *int32          `json:"bos_token_id,omitempty"`
	EOSTokenID         tokenID         `json:"eos_token_id,omitzero"`
	PadTokenID         *int32          `json:"pad_token_id,omitempty"`
	DType              string          `json:"dtype,omitempty"`
	TorchDType         string          `json:"torch_dtype,omitempty"`
	NameOrPath         json.RawMessage `json:"_name_or_path,omitempty"`
	TransformersVer    json.RawMessage `json:"transformers_version,omitempty"`
	UseCache           json.RawMessage `json:"use_cache,omitempty"`
	MaxWindowLayers    json.RawMessage `json:"max_window_layers,omitempty"`
	SlidingWindow      json.RawMessage `json:"sliding_window,omitempty"`
	ReturnDict         json.RawMessage `json:"return_dict,omitempty"`
	ChunkSizeFF        json.RawMessage `json:"chunk_size_feed_forward,omitempty"`
	OutputHiddenStates json.RawMessage `json:"output_hidden_states,omitempty"`
	OutputAttentions   json.RawMessage `json:"output_attentions,omitempty"`
	ProblemType        json.RawMessage `json:"problem_type,omitempty"`
	IsEncoderDecoder   json.RawMessage `json:"is_encoder_decoder,omitempty"`
	ID2Label           json.RawMessage `json:"id2label,omitempty"`
	Label2ID           json.RawMessage `json:"label2id,omitempty"`
}

type ropeParameters struct {
	RopeTheta *float64 `json:"rope_theta,omitempty"`
	RopeType  string   `json:"rope_type,omitempty"`
	Type      string   `json:"type,omitempty"`
}

// tokenID is one id, or a list whose first is the end of a turn.
type tokenID struct{ id *int32 }

func (t *tokenID) UnmarshalJSON(b []byte) error {
	var list []int32
	if json.Unmarshal(b, &list) == nil {
		if len(list) > 0 {
			t.id = &list[0]
		}
		return nil
	}
	return json.Unmarshal(b, &t.id)
}

func (t tokenID) MarshalJSON() ([]byte, error) { return json.Marshal(t.id) }
func (t tokenID) IsZero() bool                 { return t.id == nil }

// ParseConfig is ReadConfig for the content of a config.json.
func ParseConfig(raw []byte) (Config, error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	f := configFile{MaxPosition: defaultMaxPosition, InitializerRange: defaultInitializerRange, HiddenAct: "silu"}
	if err := d.Decode(&f); err != nil {
		return Config{}, fmt.Errorf("a key or value this model family does not have: %w", err)
	}
	if err := f.refuse(); err != nil {
		return Config{}, err
	}
	theta, err := f.theta()
	if err != nil {
		return Config{}, err
	}
	c := Config{
		VocabSize: f.VocabSize, HiddenSize: f.HiddenSize, IntermediateSize: f.IntermediateSize, Layers: f.Layers, Heads: f.Heads,
		KVHeads: f.KVHeads, HeadDim: f.HeadDim, MaxPosition: f.MaxPosition, RMSNormEps: f.RMSNormEps, RopeTheta: theta,
		TieWordEmbeddings: f.TieWordEmbeddings, InitializerRange: f.InitializerRange,
		BOSTokenID: f.BOSTokenID, EOSTokenID: f.EOSTokenID.id, PadTokenID: f.PadTokenID,
	}
	return c, c.Validate()
}

// refuse names the first key whose value asks for other mathematics.
func (f *configFile) refuse() error {
	switch {
	case !slices.Contains(f.Architectures, "Qwen3ForCausalLM"):
		return fmt.Errorf("architectures is %q, want Qwen3ForCausalLM", f.Architectures)
	case f.ModelType != "" && f.ModelType != "qwen3":
		return fmt.Errorf("model_type is %q, want qwen3", f.ModelType)
	case f.HiddenAct != "silu":
		return fmt.Errorf("hidden_act is %q, want silu", f.HiddenAct)
	case f.AttentionBias:
		return errors.New("attention_bias is true, want false")
	case f.AttentionDropout != 0:
		return fmt.Errorf("attention_dropout is %v, want 0", f.AttentionDropout)
	case f.UseSlidingWindow:
		return errors.New("use_sliding_window is true, want false")
	}
	for i, t := range f.LayerTypes {
		if t != "full_attention" {
			return fmt.Errorf("layer_types[%d] is %q, want full_attention", i, t)
		}
	}
	return nil
}

// theta reads the base of the rotary angles from its old place (rope_theta) or its new one (rope_parameters.rope_theta).
func (f *configFile) theta() (float64, error) {
	for _, p := range []struct {
		name string
		r    *ropeParameters
	}{{"rope_parameters", f.RopeParameters}, {"rope_scaling", f.RopeScaling}} {
		if p.r == nil {
			continue
		}
		for key, kind := range map[string]string{"rope_type": p.r.RopeType, "type": p.r.Type} {
			if kind != "" && kind != "default" {
				return 0, fmt.Errorf("%s.%s is %q, want default", p.name, key, kind)
			}
		}
	}
	nested := f.RopeParameters != nil && f.RopeParameters.RopeTheta != nil
	switch {
	case nested && f.RopeTheta != nil && *f.RopeTheta != *f.RopeParameters.RopeTheta:
		return 0, fmt.Errorf("rope_theta is %v and rope_parameters.rope_theta is %v: they must agree", *f.RopeTheta, *f.RopeParameters.RopeTheta)
	case nested:
		return *f.RopeParameters.RopeTheta, nil
	case f.RopeTheta != nil:
		return *f.RopeTheta, nil
	}
	return 0, errors.New("neither rope_theta nor rope_parameters.rope_theta is given")
}

// Validate reports the first impossible field.
func (c Config) Validate() error {
	for _, f := range []struct {
		name        string
		value, most int // most is far beyond any published model, and keeps every product of sizes within an int
	}{
		{"vocab_size", c.VocabSize, 1 << 22}, {"hidden_size", c.HiddenSize, 1 << 17}, {"intermediate_size", c.IntermediateSize, 1 << 19},
		{"num_hidden_layers", c.Layers, 1 << 10}, {"num_attention_heads", c.Heads, 1 << 11}, {"num_key_value_heads", c.KVHeads, 1 << 11},
		{"head_dim", c.HeadDim, 1 << 11}, {"max_position_embeddings", c.MaxPosition, 1 << 22},
	} {
		if f.value <= 0 || f.value > f.most {
			return fmt.Errorf("%s is %d, want 1 to %d", f.name, f.value, f.most)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("num_attention_heads (%d) must be divisible by num_key_value_heads (%d)", c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("head_dim is %d, want an even number: rotary angles turn pairs", c.HeadDim)
	case !(c.RMSNormEps > 0 && c.RMSNormEps < 1):
		return fmt.Errorf("rms_norm_eps is %v, want a number between 0 and 1", c.RMSNormEps)
	case !(c.RopeTheta > 1):
		return fmt.Errorf("rope_theta is %v, want more than 1", c.RopeTheta)
	case !(c.InitializerRange >= 0 && c.InitializerRange < 1):
		return fmt.Errorf("initializer_range is %v, want a number from 0 to 1", c.InitializerRange)
	}
	return nil
}

// encode writes config.json with the base of the rotary angles in both places, so that old and new readers find it.
func (c Config) encode() ([]byte, error) {
	theta := c.RopeTheta
	f := configFile{
		Architectures: []string{"Qwen3ForCausalLM"}, ModelType: "qwen3", VocabSize: c.VocabSize, HiddenSize: c.HiddenSize,
		IntermediateSize: c.IntermediateSize, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		MaxPosition: c.MaxPosition, RMSNormEps: c.RMSNormEps, RopeTheta: &theta,
		RopeParameters:    &ropeParameters{RopeTheta: &theta, RopeType: "default"},
		TieWordEmbeddings: c.TieWordEmbeddings, InitializerRange: c.InitializerRange, HiddenAct: "silu",
		BOSTokenID: c.BOSTokenID, EOSTokenID: tokenID{c.EOSTokenID}, PadTokenID: c.PadTokenID, TorchDType: "float32",
	}
	b, err := json.MarshalIndent(f, "", "  ")
	return append(b, '\n'), err
}
