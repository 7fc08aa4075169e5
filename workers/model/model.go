// Package model is the dense decoder of the Qwen3, Qwen2 and Llama families: weights, forward and backward over packed sequences, and the cached forward of the sampler.
//
// Invariants:
//
//   - The bits of a token's hidden state, logits and log-probability depend on the weights and on the tokens before it in its own
//     sequence, and on nothing else: not on the batch, on how a prompt was cut, on cache or no cache, on GOMAXPROCS. LogProbs,
//     Backward and Extend run the same operations in the same order, row by row.
//   - The gradient of a weight is one sum over tokens ascending. Calls of Backward over consecutive sequences continue it, so
//     they give the bits of a single call.
//   - Logits, log-softmax and all sums are float32 or wider on both sides.
//   - What tells one family from another is its configuration and which tensors it has; the passes follow the tensors.
//   - Reading a folder is strict: every tensor expected, present, of the right shape, finite.
package model

import (
	"cmp"
	"math"
	"strings"
	"sync"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/kernels/cpu"
	"github.com/restar-rl/restar/kernels/philox"
)

// BlockTokens is the number of positions of one block of a KVCache.
const BlockTokens = kernels.BlockTokens

// Model is a configuration with weights. Reading methods may run at once from several goroutines, each with its own Workspace; nothing may
// run while weights change.
type Model struct {
	Config    Config
	backend   kernels.Backend
	precision Precision
	data      []float32
	all       kernels.View
	params    []Param
	weights   tensors
	packed    packed
	angles    *angles
}

// host is the backend that RESTAR_CPU_ISA asks for.
var host = sync.OnceValues(cpu.FromEnv)

// New makes a model with initial weights: norms 1, biases 0, matrices normal with the configured deviation, and those that write into the
// residual stream divided by sqrt(2*layers) (Radford et al. 2019, section 2.3). Each weight has its own random address.
func New(cfg Config, seed uint64, opts ...Option) (*Model, error) {
	b, err := host()
	if err != nil {
		return nil, err
	}
	return newModel(b, cfg, seed, opts...)
}

func newModel(b kernels.Backend, cfg Config, seed uint64, opts ...Option) (*Model, error) {
	m, err := allocate(b, cfg, opts...)
	if err != nil {
		return nil, err
	}
	key := philox.NewKey(seed)
	residual := cfg.InitializerRange / math.Sqrt(float64(2*cfg.Layers))
	for i, p := range m.params {
		switch {
		case strings.HasSuffix(p.Name, ".bias"):
		case len(p.Shape) == 1:
			for j := range p.Data {
				p.Data[j] = 1
			}
		case strings.HasSuffix(p.Name, "o_proj.weight") || strings.HasSuffix(p.Name, "down_proj.weight"):
			fillNormal(p.Data, key, i, residual)
		default:
			fillNormal(p.Data, key, i, cfg.InitializerRange)
		}
	}
	m.WeightsChanged()
	return m, nil
}

// fillNormal draws by Box and Muller: each random block gives four numbers.
func fillNormal(data []float32, key philox.Key, ordinal int, deviation float64) {
	a := philox.Address{Purpose: philox.Init, Ordinal: ordinal}
	for i := 0; i < len(data); i += 4 {
		w := key.At(a.WithToken(i / 4))
		var z [4]float64
		for j := 0; j < 4; j += 2 {
			r := math.Sqrt(-2 * math.Log((float64(w[j])+0.5)/(1<<32)))
			sin, cos := math.Sincos(2 * math.Pi * float64(w[j+1]) / (1 << 32))
			z[j], z[j+1] = float64(r*cos), float64(r*sin)
		}
		for j := range min(4, len(data)-i) {
			data[i+j] = float32(deviation * z[j])
		}
	}
}

// allocate makes a model with zero weights.
func allocate(b kernels.Backend, cfg Config, opts ...Option) (*Model, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Family = cmp.Or(cfg.Family, Qwen3)
	m := &Model{Config: cfg, backend: b, precision: choose(opts).precision, data: make([]float32, cfg.Elements())}
	_, err := kernels.ParsePrecision(string(m.precision))
	if err != nil {
		return nil, err
	}
	if m.all, err = b.Wrap(m.data); err != nil {
		return nil, err
	}
	m.params, m.weights = cfg.cut(m.data), cfg.shape(m.all)
	if err := m.allocatePacked(); err != nil {
		return nil, err
	}
	m.angles = &angles{config: cfg}
	return m, nil
}

// Precision is what the model was made with.
func (m *Model) Precision() Precision { return m.precision }

// Params lists the weights in a fixed order. After changing any Data, call WeightsChanged.
func (m *Model) Params() []Param { return m.params }

// Tensors lists the weights as tensors, sharing their memory.
func (m *Model) Tensors() []Tensor {
	ts := make([]Tensor, len(m.params))
	for i, p := range m.params {
		ts[i] = Tensor(p)
	}
	return ts
}

// Clone copies the model.
func (m *Model) Clone() (*Model, error) {
	c, err := allocate(m.backend, m.Config, WithPrecision(m.precision))
	if err != nil {
		return nil, err
	}
	copy(c.data, m.data)
	c.angles = m.angles
	c.WeightsChanged()
	return c, nil
}
