package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// ropeFile is rope_parameters, or the older rope_scaling, of config.json.
type ropeFile struct {
	RopeType         string   `json:"rope_type,omitempty"`
	Type             string   `json:"type,omitempty"` // the oldest name of rope_type
	RopeTheta        *float64 `json:"rope_theta,omitempty"`
	Factor           *float64 `json:"factor,omitempty"`
	OriginalPosition *float64 `json:"original_max_position_embeddings,omitempty"`
	LowFreqFactor    *float64 `json:"low_freq_factor,omitempty"`
	HighFreqFactor   *float64 `json:"high_freq_factor,omitempty"`
	AttentionFactor  *float64 `json:"attention_factor,omitempty"`
	BetaFast         *float64 `json:"beta_fast,omitempty"`
	BetaSlow         *float64 `json:"beta_slow,omitempty"`
	MScale           *float64 `json:"mscale,omitempty"`
	MScaleAllDim     *float64 `json:"mscale_all_dim,omitempty"`
	Truncate         *bool    `json:"truncate,omitempty"`

	keys []string // those that the file names
}

// ropeKeys are the keys of each rope_type beside itself and the base.
var ropeKeys = map[string][]string{
	"default":  {},
	RopeLinear: {"factor"},
	RopeLlama3: {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
	RopeYaRN: {"factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim",
		"truncate"},
}

// lengthKinds turn every token of a sequence by its final length.
var lengthKinds = []string{"dynamic", "longrope", "su"}

func (r *ropeFile) UnmarshalJSON(raw []byte) error {
	members, err := object(raw)
	if err != nil {
		return err
	}
	type plain ropeFile
	clean, err := json.Marshal(members)
	if err == nil {
		err = json.Unmarshal(clean, (*plain)(r))
	}
	r.keys = slices.Sorted(maps.Keys(members))
	return err
}

// scaling is the meaning of one of the two places, whose name errors begin with.
func (r *ropeFile) scaling(name string, maxPosition int) (RopeScaling, error) {
	kindKey, kind := "rope_type", r.RopeType
	if kind == "" {
		kindKey, kind = "type", r.Type
	}
	if kind == "" {
		kind = "default"
	}
	keys, ok := ropeKeys[kind]
	switch {
	case r.RopeType != "" && r.Type != "" && r.RopeType != r.Type:
		return RopeScaling{}, fmt.Errorf("%s.rope_type is %q and %s.type is %q: they must agree", name, r.RopeType, name, r.Type)
	case slices.Contains(lengthKinds, kind):
		return RopeScaling{}, fmt.Errorf("%s.%s is %q, supported are %s: its angles depend on the length of the whole sequence, so what a token computes would change with the tokens after it",
			name, kindKey, kind, ropeKinds())
	case !ok:
		return RopeScaling{}, fmt.Errorf("%s.%s is %q, supported are %s", name, kindKey, kind, ropeKinds())
	}
	for _, key := range r.keys {
		if !slices.Contains(keys, key) && key != "rope_type" && key != "type" && key != "rope_theta" {
			return RopeScaling{}, fmt.Errorf("%s.%s is given, but rope_type %q has only %q", name, key, kind, keys)
		}
	}
	if kind == "default" {
		return RopeScaling{}, nil
	}
	s, err := r.values(kind, maxPosition)
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func ropeKinds() string { return strings.Join(slices.Sorted(maps.Keys(ropeKeys)), ", ") }

func (r *ropeFile) values(kind string, maxPosition int) (RopeScaling, error) {
	or := func(x *float64, otherwise float64) float64 {
		if x == nil {
			return otherwise
		}
		return *x
	}
	s := RopeScaling{Kind: kind, Factor: or(r.Factor, 0)}
	if r.Factor == nil {
		return s, fmt.Errorf("factor is missing, rope_type %q needs it", kind)
	}
	if kind == RopeLinear {
		return s, s.validate()
	}
	original := or(r.OriginalPosition, float64(maxPosition))
	if original != math.Trunc(original) || math.Abs(original) > 1<<31 {
		return s, fmt.Errorf("original_max_position_embeddings is %v, want a whole number", original)
	}
	s.OriginalPosition = int(original)
	switch kind {
	case RopeLlama3:
		s.LowFreqFactor, s.HighFreqFactor = or(r.LowFreqFactor, 0), or(r.HighFreqFactor, 0)
	case RopeYaRN:
		s.BetaFast, s.BetaSlow = or(r.BetaFast, 32), or(r.BetaSlow, 1) // the paper's values
		s.AttentionFactor = or(r.AttentionFactor, yarnAttention(s.Factor, or(r.MScale, 0), or(r.MScaleAllDim, 0)))
		s.Exact = r.Truncate != nil && !*r.Truncate
	}
	return s, s.validate()
}

// rope reads the base and the scaling of the rotary angles from their old places (rope_theta, rope_scaling) or their new one
// (rope_parameters). Places that are both given must agree.
func (f *configFile) rope(family *family) (float64, RopeScaling, error) {
	theta, from := f.RopeTheta, "rope_theta"
	var scaling *RopeScaling
	for _, place := range []struct {
		name string
		r    *ropeFile
	}{{"rope_parameters", f.RopeParameters}, {"rope_scaling", f.RopeScaling}} {
		if place.r == nil {
			continue
		}
		s, err := place.r.scaling(place.name, f.MaxPosition)
		switch {
		case err != nil:
			return 0, s, err
		case scaling != nil && *scaling != s:
			return 0, s, fmt.Errorf("rope_parameters mean %+v and rope_scaling means %+v: they must agree", *scaling, s)
		case theta != nil && place.r.RopeTheta != nil && *theta != *place.r.RopeTheta:
			return 0, s, fmt.Errorf("%s is %v and %s.rope_theta is %v: they must agree", from, *theta, place.name, *place.r.RopeTheta)
		}
		scaling = &s
		if place.r.RopeTheta != nil {
			theta, from = place.r.RopeTheta, place.name+".rope_theta"
		}
	}
	if theta == nil && family.defaults.theta != 0 {
		theta = &family.defaults.theta
	}
	if theta == nil {
		return 0, RopeScaling{}, errors.New("neither rope_theta nor rope_parameters.rope_theta is given")
	}
	if scaling == nil {
		scaling = &RopeScaling{}
	}
	return *theta, *scaling, nil
}

// ropeFile is the inverse of ropeFile.scaling; the new place holds the base too.
func (c Config) ropeFile(withTheta bool) *ropeFile {
	s, f := c.RopeScaling, &ropeFile{RopeType: "default"}
	if withTheta {
		f.RopeTheta = &c.RopeTheta
	}
	if s.Kind == "" {
		return f
	}
	f.RopeType, f.Factor = s.Kind, &s.Factor
	if s.Kind != RopeLinear {
		original := float64(s.OriginalPosition)
		f.OriginalPosition = &original
	}
	switch s.Kind {
	case RopeLlama3:
		f.LowFreqFactor, f.HighFreqFactor = &s.LowFreqFactor, &s.HighFreqFactor
	case RopeYaRN:
		f.BetaFast, f.BetaSlow, f.AttentionFactor = &s.BetaFast, &s.BetaSlow, &s.AttentionFactor
		if s.Exact {
			truncate := false
			f.Truncate = &truncate
		}
	}
	return f
}
