package train_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/train"
)

// rollout samples sequences of two turns with tool ids between them.
func rollout(t *testing.T, m *model.Model, n int) train.Batch {
	t.Helper()
	e, err := engine.New(m, "v1", engine.Options{Blocks: 16, MaxPrefillTokens: 48})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	sequences := make([]train.Sequence, n)
	var wg sync.WaitGroup
	for i := range sequences {
		wg.Go(func() {
			s := train.Sequence{Ordinal: i, Advantage: float32(i%3) - 1}
			add := func(ids []int32, logp []float32, sampled uint8) {
				s.IDs, s.LogProbs = append(s.IDs, ids...), append(s.LogProbs, logp...)
				for range ids {
					s.Mask = append(s.Mask, sampled)
				}
			}
			outside := []int32{1, 2, 3, 4, 5, 6, 7, 8, int32(i / 4)}
			add(outside, make([]float32, len(outside)), 0)
			for turn := range 2 {
				g, err := e.Generate(ctx, engine.Request{Session: fmt.Sprint(i), Group: fmt.Sprint(i / 4), IDs: s.IDs, MaxNew: 20 + 13*(i%7),
					Temperature: 1, Stop: []int32{9}, Seed: 4, Address: philox.Address{Purpose: philox.Rollout, Ordinal: i / 4, Sample: i % 4, Turn: turn}})
				if err != nil {
					t.Error(err)
					return
				}
				add(g.IDs, g.LogProbs, 1)
				if turn == 0 {
					add(outside, make([]float32, len(outside)), 0)
				}
			}
			sequences[i] = s
		})
	}
	wg.Wait()
	return train.Batch{Sequences: sequences}
}

func TestTrap05TheOnPolicyRatioIsExactlyOne(t *testing.T) {
	for _, p := range []model.Precision{model.PrecisionFP32, model.PrecisionBF16} {
		t.Run(string(p), func(t *testing.T) { onPolicy(t, p) })
	}
}

func onPolicy(t *testing.T, p model.Precision) {
	m, err := model.New(model.Config{VocabSize: 61, HiddenSize: 32, IntermediateSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8,
		MaxPosition: 512, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3}, 1, model.WithPrecision(p))
	if err != nil {
		t.Fatal(err)
	}
	s := train.NewState(m)
	s.Plan.MicroTokens = 100
	for step := range int64(3) {
		got, err := train.Step(t.Context(), s, rollout(t, m, 24), step+1,
			train.Objective{Kind: train.PolicyGradient, Clip: rl.Clip{Low: 0.2, High: 0.28}}, train.Optimizer{LR: 0.01, Beta1: 0.9, Beta2: 0.999, ClipNorm: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got.RatioMax != 1 || got.KL != 0 || got.ClipFracLow != 0 || got.ClipFracHigh != 0 || got.GradNorm == 0 || got.Tokens == 0 {
			t.Errorf("step %d on its own samples: %+v, want a ratio of exactly 1, no KL, no clipping and a gradient", step+1, got)
		}
	}
}

func TestTrap03EveryLogProbIsThatOfItsOwnToken(t *testing.T) {
	m, err := model.New(model.Config{VocabSize: 61, HiddenSize: 32, IntermediateSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8,
		MaxPosition: 512, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rollout(t, m, 8).Sequences {
		scored, _, err := m.LogProbs(t.Context(), nil, model.Pack(s.IDs))
		if err != nil {
			t.Fatal(err)
		}
		turns, neighbours := 0, 0
		for i, k := range s.Mask {
			if k == 0 {
				continue
			}
			if s.Mask[i-1] == 0 {
				turns++
			}
			if scored[i] != s.LogProbs[i] { // the first and the last of each turn too
				t.Errorf("sequence %d token %d of turn %d: the sampler has %v, the trainer %v", s.Ordinal, i, turns, s.LogProbs[i], scored[i])
			}
			if i+1 < len(scored) && scored[i+1] != s.LogProbs[i] && scored[i-1] != s.LogProbs[i] {
				neighbours++
			}
		}
		if turns != 2 || neighbours < 10 {
			t.Errorf("sequence %d has %d turns and %d tokens that differ from their neighbours; a shift would not be seen", s.Ordinal, turns, neighbours)
		}
	}
}
