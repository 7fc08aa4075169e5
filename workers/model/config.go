package model

import (
	"fmt"
	"math"
	"os"
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
	MoreEOSTokenIDs                    []int32 // further ids that end a turn, where the file lists several
}

// ReadConfig reads and validates a config.json. A key whose meaning is unknown is an error that names it: it could change the mathematics.
// What has no influence on the mathematics is skipped by an explicit list.
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

// Validate reports the first impossible field.
func (c Config) Validate() error {
	f, err := c.Family.known()
	if err != nil {
		return err
	}
	if err := f.options(c); err != nil {
		return err
	}
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
	case !(c.RopeTheta > 1) || math.IsInf(c.RopeTheta, 0):
		return fmt.Errorf("rope_theta is %v, want a finite number above 1", c.RopeTheta)
	case !(c.InitializerRange >= 0 && c.InitializerRange < 1):
		return fmt.Errorf("initializer_range is %v, want a number from 0 to 1", c.InitializerRange)
	}
	return c.RopeScaling.validate()
}
