package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// configFile is config.json as far as it has a meaning here.
type configFile struct {
	Architectures     []string  `json:"architectures"`
	ModelType         string    `json:"model_type"`
	VocabSize         int       `json:"vocab_size"`
	HiddenSize        int       `json:"hidden_size"`
	IntermediateSize  int       `json:"intermediate_size"`
	Layers            int       `json:"num_hidden_layers"`
	Heads             int       `json:"num_attention_heads"`
	KVHeads           int       `json:"num_key_value_heads"`
	HeadDim           int       `json:"head_dim"`
	MaxPosition       int       `json:"max_position_embeddings"`
	RMSNormEps        float64   `json:"rms_norm_eps"`
	RopeTheta         *float64  `json:"rope_theta,omitempty"`
	RopeParameters    *ropeFile `json:"rope_parameters,omitempty"`
	RopeScaling       *ropeFile `json:"rope_scaling,omitempty"`
	TieWordEmbeddings bool      `json:"tie_word_embeddings"`
	InitializerRange  float64   `json:"initializer_range"`
	HiddenAct         string    `json:"hidden_act"`
	AttentionBias     *bool     `json:"attention_bias,omitempty"`
	MLPBias           *bool     `json:"mlp_bias,omitempty"`
	UseSlidingWindow  bool      `json:"use_sliding_window,omitempty"`
	SlidingWindow     int       `json:"sliding_window,omitempty"`
	MaxWindowLayers   *int      `json:"max_window_layers,omitempty"`
	LayerTypes        []string  `json:"layer_types,omitempty"`
	BOSTokenID        *int32    `json:"bos_token_id,omitempty"`
	EOSTokenID        tokenIDs  `json:"eos_token_id,omitempty"`
	PadTokenID        *int32    `json:"pad_token_id,omitempty"`
	TorchDType        string    `json:"torch_dtype,omitempty"`
}

// Defaults that all families share.
const (
	defaultRMSNormEps       = 1e-6
	defaultInitializerRange = 0.02
)

// tokenIDs is one id or a list.
type tokenIDs []int32

func (t *tokenIDs) UnmarshalJSON(b []byte) error {
	var one *int32
	if err := json.Unmarshal(b, &one); err == nil && one != nil {
		*t = tokenIDs{*one}
		return nil
	}
	var list []*int32
	if err := json.Unmarshal(b, &list); err != nil || list == nil || slices.Contains(list, nil) {
		return errors.New("want an id or a list of ids")
	}
	*t = make(tokenIDs, len(list))
	for i, id := range list {
		(*t)[i] = *id
	}
	return nil
}

func (t tokenIDs) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]int32(t))
}

// object splits a JSON object into its members. A member named twice is an error; one without a value (null) counts as not named.
func object(raw []byte) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	err := eachMember(bytes.NewReader(raw), func(key string, d *json.Decoder) error {
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		members[key] = value
		return nil
	})
	for key, value := range members {
		if string(value) == "null" {
			delete(members, key)
		}
	}
	return members, err
}

// eachMember calls f, which takes the value off d, for each member of the one JSON object in r.
func eachMember(r io.Reader, f func(key string, d *json.Decoder) error) error {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(fmt.Errorf("starts with %v, want a JSON object", t), err)
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok || seen[key] {
			return fmt.Errorf("key %v is named twice, want each once", t)
		}
		seen[key] = true
		if err := f(key, d); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if t, err := d.Token(); err != io.EOF {
		return errors.Join(fmt.Errorf("goes on with %v after its end", t), err)
	}
	return nil
}

// ParseConfig is ReadConfig for the content of a config.json.
func ParseConfig(raw []byte) (Config, error) {
	members, err := object(raw)
	if err != nil {
		return Config{}, fmt.Errorf("not a config.json: %w", err)
	}
	var f configFile
	for _, key := range []string{"architectures", "model_type"} {
		if err := f.set(members, key); err != nil {
			return Config{}, err
		}
	}
	family, err := f.family()
	if err != nil {
		return Config{}, err
	}
	if err := family.checkKeys(members); err != nil {
		return Config{}, err
	}
	f.RMSNormEps, f.InitializerRange = defaultRMSNormEps, defaultInitializerRange
	f.MaxPosition = family.defaults.maxPosition
	for key := range members {
		if err := f.set(members, key); err != nil {
			return Config{}, err
		}
	}
	return f.config(family)
}

// set reads one member, if it is there.
func (f *configFile) set(members map[string]json.RawMessage, key string) error {
	value, ok := members[key]
	if !ok {
		return nil
	}
	one, err := json.Marshal(map[string]json.RawMessage{key: value})
	if err == nil {
		err = json.Unmarshal(one, f)
	}
	if err != nil {
		return fmt.Errorf("%s is %s: %w", key, short(value), err)
	}
	return nil
}

func (f *configFile) family() (*family, error) {
	if len(f.Architectures) > 0 {
		return byArchitecture(f.Architectures, f.ModelType)
	}
	if f.ModelType == "" {
		return nil, errors.New("neither architectures nor model_type says which family this is")
	}
	return Family(f.ModelType).known()
}

// config is the file's meaning in a family.
func (f *configFile) config(family *family) (Config, error) {
	if err := f.fullAttention(); err != nil {
		return Config{}, err
	}
	if f.KVHeads == 0 && family.defaults.kvHeadsEqual {
		f.KVHeads = f.Heads
	}
	if f.HeadDim == 0 {
		f.HeadDim = family.defaults.headDim
	}
	if f.HeadDim == 0 && f.Heads > 0 {
		if f.HiddenSize%f.Heads != 0 {
			return Config{}, fmt.Errorf("hidden_size (%d) is not a multiple of num_attention_heads (%d), want head_dim named then", f.HiddenSize, f.Heads)
		}
		f.HeadDim = f.HiddenSize / f.Heads
	}
	theta, scaling, err := f.rope(family)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		Family: family.name, VocabSize: f.VocabSize, HiddenSize: f.HiddenSize, IntermediateSize: f.IntermediateSize, Layers: f.Layers,
		Heads: f.Heads, KVHeads: f.KVHeads, HeadDim: f.HeadDim, MaxPosition: f.MaxPosition, RMSNormEps: f.RMSNormEps,
		RopeTheta: theta, RopeScaling: scaling, AttentionBias: f.AttentionBias != nil && *f.AttentionBias, MLPBias: f.MLPBias != nil && *f.MLPBias,
		TieWordEmbeddings: f.TieWordEmbeddings, InitializerRange: f.InitializerRange,
		BOSTokenID: f.BOSTokenID, PadTokenID: f.PadTokenID,
	}
	if len(f.EOSTokenID) > 0 {
		c.EOSTokenID = &f.EOSTokenID[0]
	}
	if len(f.EOSTokenID) > 1 {
		c.MoreEOSTokenIDs = f.EOSTokenID[1:]
	}
	return c, c.Validate()
}

// fullAttention refuses layers that see a window of positions only.
func (f *configFile) fullAttention() error {
	if f.UseSlidingWindow && (f.MaxWindowLayers == nil || *f.MaxWindowLayers < f.Layers) {
		return fmt.Errorf("use_sliding_window is true (sliding_window %d), want false: every layer sees all positions", f.SlidingWindow)
	}
	for i, t := range f.LayerTypes {
		if t != "full_attention" {
			return fmt.Errorf("layer_types[%d] is %q, want full_attention", i, t)
		}
	}
	return nil
}

// encode writes config.json with the rotary angles in both places, so that old and new readers find them. dtype is that of the weights
// beside it, as PyTorch names it.
func (c Config) encode(dtype string) ([]byte, error) {
	family, err := c.Family.known()
	if err != nil {
		return nil, err
	}
	theta := c.RopeTheta
	f := configFile{
		Architectures: []string{family.architecture}, ModelType: string(family.name), VocabSize: c.VocabSize, HiddenSize: c.HiddenSize,
		IntermediateSize: c.IntermediateSize, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		MaxPosition: c.MaxPosition, RMSNormEps: c.RMSNormEps, RopeTheta: &theta, RopeParameters: c.ropeFile(true),
		TieWordEmbeddings: c.TieWordEmbeddings, InitializerRange: c.InitializerRange, HiddenAct: "silu",
		BOSTokenID: c.BOSTokenID, PadTokenID: c.PadTokenID, TorchDType: dtype,
	}
	if c.EOSTokenID != nil {
		f.EOSTokenID = append(tokenIDs{*c.EOSTokenID}, c.MoreEOSTokenIDs...)
	}
	if c.RopeScaling.Kind != "" {
		f.RopeScaling = c.ropeFile(false)
	}
	if family.has("attention_bias") {
		f.AttentionBias = &c.AttentionBias
	}
	if family.has("mlp_bias") {
		f.MLPBias = &c.MLPBias
	}
	b, err := json.MarshalIndent(f, "", "  ")
	return append(b, '\n'), err
}
