package train

import (
	"math"
	"os"
	"testing"

	"github.com/restar-rl/restar/workers/model"
)

// The goldens are those of package model: testdata/golden.py trains each model for three steps in PyTorch.
const goldens = "../model/testdata/"

// goldenBatch is demonstrations of every token but the first.
func goldenBatch(t *testing.T, g map[string][]float32) Batch {
	t.Helper()
	var b Batch
	at := 0
	for i, n := range g["lengths"] {
		s := Sequence{Ordinal: i, LogProbs: make([]float32, int(n)), Mask: make([]uint8, int(n))}
		for k := range int(n) {
			s.IDs = append(s.IDs, int32(g["ids"][at+k]))
			if k > 0 {
				s.Mask[k] = 1
			}
		}
		b.Sequences, at = append(b.Sequences, s), at+int(n)
	}
	return b
}

func TestThreeStepsAreThoseOfPyTorch(t *testing.T) {
	for _, folder := range []string{"qwen3", "qwen3-untied", "qwen2", "llama", "llama-biased"} {
		raw, err := os.ReadFile(goldens + folder + "/golden.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		ts, _, err := model.DecodeSafetensors(raw)
		if err != nil {
			t.Fatal(err)
		}
		g := map[string][]float32{}
		for _, x := range ts {
			g[x.Name] = x.Data
		}
		m, err := model.Load(goldens + folder)
		if err != nil {
			t.Fatal(err)
		}
		s, b := NewState(m), goldenBatch(t, g)
		opt := Optimizer{LR: 5e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, ClipNorm: 0.5, Schedule: Cosine, WarmupSteps: 1, TotalSteps: 4}
		if len(g["train.loss"]) != 4 || len(g["train.norm"]) != 3 {
			t.Fatalf("%s: the golden has %d losses and %d norms, want 4 and 3", folder, len(g["train.loss"]), len(g["train.norm"]))
		}
		for step, want := range g["train.loss"] {
			got, err := Step(t.Context(), s, b, int64(step+1), Objective{Kind: SFT}, opt)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Loss-float64(want)) > 1e-5*float64(want) {
				t.Errorf("%s: loss after %d steps is %v, want %v", folder, step, got.Loss, want)
			}
			if step < len(g["train.norm"]) {
				if norm := float64(g["train.norm"][step]); math.Abs(got.GradNorm-norm) > 1e-5*norm || norm < opt.ClipNorm {
					t.Errorf("%s: gradient norm of step %d is %v, want %v, above the clip", folder, step+1, got.GradNorm, norm)
				}
			}
		}
	}
}
