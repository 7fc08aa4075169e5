package model

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/kernels/cpu"
)

// golden is what PyTorch computed; see testdata/golden.py.
type golden map[string]Tensor

func readGolden(t *testing.T, folder string) golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + folder + "/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	ts, _, err := DecodeSafetensors(raw)
	if err != nil {
		t.Fatal(err)
	}
	g := golden{}
	for _, x := range ts {
		g[x.Name] = x
	}
	return g
}

func (g golden) sequences() [][]int32 {
	var out [][]int32
	at := 0
	for _, n := range g["lengths"].Data {
		var s []int32
		for _, id := range g["ids"].Data[at : at+int(n)] {
			s = append(s, int32(id))
		}
		out, at = append(out, s), at+int(n)
	}
	return out
}

// near fails unless every element is within tolerance of want, relative to want's largest element.
func near(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	top := 0.0
	for _, v := range want {
		top = max(top, math.Abs(float64(v)))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance*top) {
			t.Errorf("%s[%d] is %g, want %g (largest %g)", what, i, got[i], want[i], top)
			return
		}
	}
}

func TestLogitsLogProbsAndGradientsAreThoseOfPyTorch(t *testing.T) {
	onEveryPath(t, func(t *testing.T, b *cpu.Backend) {
		for _, folder := range []string{"tied", "untied"} {
			want := readGolden(t, folder)
			m, err := load(b, "testdata/"+folder)
			if err != nil {
				t.Fatal(err)
			}
			ws, g := NewWorkspace(), NewGradient(m)
			coef := func(logp, entropy []float32) ([]float32, error) {
				near(t, folder+" logp", logp, want["logp"].Data, 1e-5)
				near(t, folder+" entropy", entropy, want["entropy"].Data, 1e-5)
				return want["coef"].Data, nil
			}
			if err := m.Backward(t.Context(), ws, Pack(want.sequences()...), coef, g); err != nil {
				t.Fatal(err)
			}
			for _, ts := range g.Tensors() {
				near(t, folder+" gradient of "+ts.Name, ts.Data, want["grad."+ts.Name].Data, 1e-5)
			}
			near(t, folder+" logits", extendAll(t, m, b, ws, want.sequences()), want["logits"].Data, 1e-5)
		}
	})
}

// extendAll returns the logits that follow each sequence.
func extendAll(t *testing.T, m *Model, b *cpu.Backend, ws *Workspace, sequences [][]int32) []float32 {
	t.Helper()
	var spans []Span
	for i, s := range sequences {
		spans = append(spans, Span{IDs: s, Blocks: []int{2 * i, 2*i + 1}, Want: true})
	}
	logits, err := m.Extend(t.Context(), ws, spans, newKVCache(b, m.Config, 2*len(spans)))
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

func TestAdamWIsThatOfPyTorch(t *testing.T) {
	want := readGolden(t, "tied")
	m, err := Load("testdata/tied")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Params() {
		end, ok := want["adamw.w."+p.Name]
		if !ok {
			continue
		}
		mom, vel := make([]float32, len(p.Data)), make([]float32, len(p.Data))
		for step := range int64(3) {
			g := slices.Clone(want["grad."+p.Name].Data)
			for i := range g {
				g[i] *= 1 - 0.75*float32(step)
			}
			c := kernels.AdamWStep{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Step: step + 1, Scale: 1}
			if err := AdamW(t.Context(), p.Data, mom, vel, g, c); err != nil {
				t.Fatal(err)
			}
		}
		near(t, "weights "+p.Name, p.Data, end.Data, 1e-6)
		near(t, "first moments "+p.Name, mom, want["adamw.m."+p.Name].Data, 1e-6)
		near(t, "second moments "+p.Name, vel, want["adamw.v."+p.Name].Data, 1e-6)
	}
}
