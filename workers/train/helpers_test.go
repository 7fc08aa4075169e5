package train

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/rl"
)

func tinyModel(t testing.TB, seed uint64, opts ...model.Option) *model.Model {
	t.Helper()
	m, err := model.New(tinyConfig(), seed, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func tinyConfig() model.Config {
	return model.Config{VocabSize: 31, HiddenSize: 16, IntermediateSize: 24, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8,
		MaxPosition: 512, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3}
}

// untiedModel is tinyModel with a head of its own, a bias on every projection and no norms of heads.
func untiedModel(t testing.TB, seed uint64, opts ...model.Option) *model.Model {
	t.Helper()
	c := tinyConfig()
	c.Family, c.TieWordEmbeddings, c.AttentionBias, c.MLPBias = model.Llama, false, true, true
	m, err := model.New(c, seed, opts...)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range m.Params() {
		if strings.HasSuffix(p.Name, ".bias") { // new ones are 0
			for j := range p.Data {
				p.Data[j] = float32(0.2 * (rng.Uniform(philox.Address{Purpose: philox.Init, Ordinal: i, Token: j}) - 0.5))
			}
		}
	}
	m.WeightsChanged()
	return m
}

// maker makes a model of one shape.
type maker func(t testing.TB, seed uint64, opts ...model.Option) *model.Model

// inEveryShape runs a test on models with tied embeddings and norms of heads, and on models with a head of their own and biases.
func inEveryShape(t *testing.T, f func(t *testing.T, shape maker)) {
	t.Run("tied", func(t *testing.T) { f(t, tinyModel) })
	t.Run("untied with biases", func(t *testing.T) { f(t, untiedModel) })
}

// inEveryShapeAndPrecision runs a test on models of each shape in each precision.
func inEveryShapeAndPrecision(t *testing.T, f func(t *testing.T, shape maker)) {
	inEveryShape(t, func(t *testing.T, shape maker) {
		for _, p := range []model.Precision{model.PrecisionFP32, model.PrecisionBF16} {
			t.Run(string(p), func(t *testing.T) {
				f(t, func(t testing.TB, seed uint64, opts ...model.Option) *model.Model {
					return shape(t, seed, append(opts, model.WithPrecision(p))...)
				})
			})
		}
	})
}

var rng = philox.NewKey(11)

// someBatch has n sequences of mixed lengths, prompts, tool outputs, advantages and somewhat off-policy log-probs.
func someBatch(t testing.TB, m *model.Model, n int, seed int) Batch {
	t.Helper()
	var b Batch
	for i := range n {
		at := philox.Address{Purpose: philox.Select, Ordinal: seed, Sample: i}
		length := 2 + rng.IntN(at, 100)
		switch i { // a whole block, and a sequence with nothing to learn
		case 3:
			length = 64
		case 5:
			length = 1
		}
		s := Sequence{Ordinal: 3*i + 1, Advantage: float32(2*rng.Uniform(at.WithToken(1)) - 1), LogProbs: make([]float32, length), Mask: make([]uint8, length)}
		for t := range length {
			s.IDs = append(s.IDs, int32(rng.IntN(at.WithTurn(1).WithToken(t), m.Config.VocabSize)))
			if t > 0 && rng.IntN(at.WithTurn(2).WithToken(t), 3) > 0 {
				s.Mask[t] = 1
			}
		}
		logp, _, err := m.LogProbs(t.Context(), nil, model.Pack(s.IDs))
		if err != nil {
			t.Fatal(err)
		}
		for t, k := range s.Mask {
			if k == 1 {
				s.LogProbs[t] = logp[t] + float32(0.8*(rng.Uniform(at.WithTurn(3).WithToken(t))-0.5))
			}
		}
		b.Sequences = append(b.Sequences, s)
	}
	return b
}

// withOptional gives every sequence advantages of its tokens, and log-probs of a reference and of an engine that differ a little.
func withOptional(b Batch) Batch {
	for i := range b.Sequences {
		s := &b.Sequences[i]
		n := len(s.IDs)
		s.Advantages, s.RefLogProbs, s.EngineLogProbs = make([]float32, n), make([]float32, n), make([]float32, n)
		for t, k := range s.Mask {
			at := philox.Address{Purpose: philox.Shuffle, Ordinal: i, Token: t}
			s.Advantages[t] = float32(2*rng.Uniform(at) - 1)
			if k == 1 {
				s.RefLogProbs[t] = s.LogProbs[t] + float32(rng.Uniform(at.WithTurn(1))-0.5)
				s.EngineLogProbs[t] = s.LogProbs[t] + float32(2*rng.Uniform(at.WithTurn(2))-1)
			}
		}
	}
	return b
}

func testOptimizer() Optimizer {
	return Optimizer{LR: 0.01, Beta1: 0.9, Beta2: 0.999, WeightDecay: 0.01, ClipNorm: 1}
}

func testObjective() Objective {
	return Objective{Kind: PolicyGradient, Clip: rl.Clip{Low: 0.2, High: 0.28}}
}

// bits is a state's tensors, copied.
func bits(s *State) []model.Tensor {
	ts := s.list(s.M, s.V)
	for i := range ts {
		ts[i].Data = slices.Clone(ts[i].Data)
	}
	return ts
}

func differ(a, b []model.Tensor) string {
	for i := range a {
		for j := range a[i].Data {
			if math.Float32bits(a[i].Data[j]) != math.Float32bits(b[i].Data[j]) {
				return a[i].Name
			}
		}
	}
	return ""
}
