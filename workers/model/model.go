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
	"sync"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/kernels/cpu"
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

// Blank makes a model whose weights are 0, for SetTensors to replace.
func Blank(cfg Config, opts ...Option) (*Model, error) {
	b, err := host()
	if err != nil {
		return nil, err
	}
	return allocate(b, cfg, opts...)
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
