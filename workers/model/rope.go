package model

import (
	"fmt"
	"math"
	"sync"

	"github.com/restar-rl/restar/kernels"
)

// Kinds of rotary scaling, by the rope_type of config.json. The empty one scales nothing. Kinds whose angles depend on the length of
// the whole sequence ("dynamic", "longrope") cannot be had: a token's activations would change with what comes after it.
const (
	RopeLinear = "linear" // positions are divided by Factor (Chen et al. 2023, eq. 4)
	RopeLlama3 = "llama3" // only long wavelengths are, with a smooth passage (Llama 3.1)
	RopeYaRN   = "yarn"   // the same idea by turns over the original length, and a temperature (Peng et al. 2023, eq. 19 to 22)
)

// RopeScaling stretches rotary angles to longer contexts than a model was first trained on. Fields that a kind does not use are 0.
type RopeScaling struct {
	Kind             string
	Factor           float64 // every kind; at least 1
	OriginalPosition int     // llama3, yarn: positions of the first training
	LowFreqFactor    float64 // llama3: wavelengths above OriginalPosition/LowFreqFactor are scaled whole
	HighFreqFactor   float64 // llama3: wavelengths below OriginalPosition/HighFreqFactor not at all
	BetaFast         float64 // yarn: pairs that turn more often than this over OriginalPosition are not scaled
	BetaSlow         float64 // yarn: pairs that turn less often are scaled whole
	AttentionFactor  float64 // yarn: multiplies cosines and sines
	Exact            bool    // yarn: the bounds of the passage are not rounded to whole pairs ("truncate": false)
}

func (r RopeScaling) validate() error {
	bad := func(key string, got any, want string) error {
		return fmt.Errorf("rope scaling %s: %s is %v, want %s", r.Kind, key, got, want)
	}
	finite := func(x float64) bool { return !math.IsInf(x, 0) && x == x }
	switch r.Kind {
	case "":
		if r != (RopeScaling{}) {
			return fmt.Errorf("rope scaling has values %+v but no kind", r)
		}
		return nil
	case RopeLinear:
	case RopeLlama3:
		switch {
		case !(r.LowFreqFactor > 0) || !finite(r.LowFreqFactor):
			return bad("low_freq_factor", r.LowFreqFactor, "a positive number")
		case !(r.HighFreqFactor > r.LowFreqFactor) || !finite(r.HighFreqFactor):
			return bad("high_freq_factor", r.HighFreqFactor, fmt.Sprintf("more than low_freq_factor (%v)", r.LowFreqFactor))
		}
	case RopeYaRN:
		switch {
		case !(r.BetaSlow > 0) || !finite(r.BetaSlow):
			return bad("beta_slow", r.BetaSlow, "a positive number")
		case !(r.BetaFast > r.BetaSlow) || !finite(r.BetaFast):
			return bad("beta_fast", r.BetaFast, fmt.Sprintf("more than beta_slow (%v)", r.BetaSlow))
		case !(r.AttentionFactor > 0) || !finite(r.AttentionFactor):
			return bad("attention_factor", r.AttentionFactor, "a positive number")
		}
	default:
		return fmt.Errorf("rope_type is %q, supported are default, %s, %s, %s", r.Kind, RopeLinear, RopeLlama3, RopeYaRN)
	}
	if !(r.Factor >= 1) || !finite(r.Factor) {
		return bad("factor", r.Factor, "a number of at least 1")
	}
	if r.Kind != RopeLinear && (r.OriginalPosition < 1 || r.OriginalPosition > 1<<22) {
		return bad("original_max_position_embeddings", r.OriginalPosition, fmt.Sprintf("1 to %d", 1<<22))
	}
	return nil
}

// frequencies returns the angle that each pair of a head turns by from one position to the next. Published models were trained with what
// transformers makes of it in float32, operation by operation: at position 131,072 the last place of a frequency near 1 is an angle of 0.008. So
// the scaled ones are computed with its roundings, which add up to a dozen places; without scaling they are the nearest float32, a place
// or, seldom, two from its.
func (c Config) frequencies() []float32 {
	r, half := c.RopeScaling, c.HeadDim/2
	factor := float32(r.Factor)
	low, high := c.passage()
	f := make([]float32, half)
	for i := range f {
		period := float32(math.Pow(float64(float32(c.RopeTheta)), float64(float32(2*i)/float32(c.HeadDim))))
		f[i] = 1 / period
		switch r.Kind {
		case "":
			f[i] = float32(1 / math.Pow(c.RopeTheta, float64(2*i)/float64(c.HeadDim)))
		case RopeLinear:
			f[i] /= factor
		case RopeLlama3:
			f[i] = r.llama3(f[i])
		case RopeYaRN:
			scaled := max(0, min(1, (float32(i)-float32(low))/float32(high-low))) // share of the scaling that the pair takes
			kept := 1 - scaled
			f[i] = float32(1/(factor*period)*(1-kept)) + float32(f[i]*kept)
		}
	}
	return f
}

// llama3 scales a frequency by its wavelength.
func (r RopeScaling) llama3(f float32) float32 {
	factor, original := float32(r.Factor), float64(r.OriginalPosition)
	wavelength := (1 / f) * float32(2*math.Pi)
	switch {
	case wavelength > float32(original/r.LowFreqFactor):
		return f / factor
	case wavelength < float32(original/r.HighFreqFactor):
		return f
	}
	kept := (float32(float32(1/wavelength)*float32(original)) - float32(r.LowFreqFactor)) / float32(r.HighFreqFactor-r.LowFreqFactor)
	return float32(float32((1-kept)*f)/factor) + float32(kept*f)
}

// passage returns the pairs between which YaRN goes from no scaling to all of it.
func (c Config) passage() (low, high float64) {
	r := c.RopeScaling
	if r.Kind != RopeYaRN {
		return 0, 0
	}
	pair := func(turns float64) float64 {
		return float64(c.HeadDim) * math.Log(float64(r.OriginalPosition)/(turns*2*math.Pi)) / (2 * math.Log(c.RopeTheta))
	}
	low, high = pair(r.BetaFast), pair(r.BetaSlow)
	if !r.Exact {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(c.HeadDim-1))
	if low == high {
		high += 0.001 // transformers' guard against a division by zero
	}
	return low, high
}

// yarnAttention is YaRN's own temperature for a factor (eq. 22), with the weights that some models give its numerator and denominator.
func yarnAttention(factor, mscale, all float64) float64 {
	of := func(m float64) float64 { return 0.1*m*math.Log(factor) + 1 }
	switch {
	case factor <= 1:
		return 1
	case mscale != 0 && all != 0:
		return of(mscale) / of(all)
	}
	return of(1)
}

// angles are the cosines and sines of rotary positions, made as far as passes have asked for them. Models of one configuration may
// share them.
type angles struct {
	config Config
	mu     sync.Mutex
	made   angleTable
}

// angleTable holds positions 0 .. positions-1.
type angleTable struct {
	positions int
	cos, sin  kernels.View // [positions, head_dim/2]
}

// firstPositions is the length of the first table: short enough for small models to make at once.
const firstPositions = 1024

// upTo returns a table of at least n positions.
func (a *angles) upTo(b kernels.Backend, n int) (angleTable, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.made.positions >= n {
		return a.made, nil
	}
	t, err := a.config.angleTable(b, min(max(n, 2*a.made.positions, firstPositions), a.config.MaxPosition))
	if err == nil {
		a.made = t
	}
	return t, err
}

// angleTable follows the published models, which were trained with angles of float32 precision: a frequency and its product with the
// position are rounded to float32.
func (c Config) angleTable(b kernels.Backend, positions int) (t angleTable, err error) {
	half, factor := c.HeadDim/2, 1.0
	if c.RopeScaling.Kind == RopeYaRN {
		factor = c.RopeScaling.AttentionFactor
	}
	cos, sin := make([]float32, positions*half), make([]float32, positions*half)
	for i, frequency := range c.frequencies() {
		for p := range positions {
			s, k := math.Sincos(float64(float32(p) * frequency))
			cos[p*half+i], sin[p*half+i] = float32(factor*k), float32(factor*s)
		}
	}
	t.positions = positions
	if t.cos, err = b.Wrap(cos); err != nil {
		return t, err
	}
	t.sin, err = b.Wrap(sin)
	return t, err
}
