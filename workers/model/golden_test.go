package model

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/kernels/cpu"
)

// goldens are the folders of testdata/golden.py: one or two models of each family, as transformers saved them (in float32, bfloat16
// shards with an index, and float16; with config.json in old and new shapes) and what PyTorch computed with them.
var goldens = []string{"qwen3", "qwen3-untied", "qwen2", "llama", "llama-biased"}

// golden is what PyTorch computed; see testdata/golden.py.
type golden struct {
	tensors map[string]Tensor
	errors  []string // the names that the errors of PyTorch's own precisions are listed for
}

func readGolden(t *testing.T, folder string) golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + folder + "/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	ts, meta, err := DecodeSafetensors(raw)
	if err != nil {
		t.Fatal(err)
	}
	g := golden{map[string]Tensor{}, strings.Fields(meta["errors"])}
	for _, x := range ts {
		g.tensors[x.Name] = x
	}
	return g
}

// data returns a tensor that must be there.
func (g golden) data(t *testing.T, name string) []float32 {
	t.Helper()
	x, ok := g.tensors[name]
	if !ok || len(x.Data) == 0 {
		t.Fatalf("the golden has no %s", name)
	}
	return x.Data
}

func (g golden) sequences() [][]int32 {
	var out [][]int32
	at := 0
	for _, n := range g.tensors["lengths"].Data {
		var s []int32
		for _, id := range g.tensors["ids"].Data[at : at+int(n)] {
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

// results are what a model computes with a golden's sequences and coefficients, by the golden's names.
func results(t *testing.T, b *cpu.Backend, folder string, want golden, opts ...Option) map[string][]float32 {
	t.Helper()
	m, err := load(b, "testdata/"+folder, opts...)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float32{}
	ws, g := NewWorkspace(), NewGradient(m)
	coef := func(logp, entropy []float32) ([]float32, error) {
		out["logp"], out["entropy"] = slices.Clone(logp), slices.Clone(entropy)
		return want.data(t, "coef"), nil
	}
	if err := m.Backward(t.Context(), ws, Pack(want.sequences()...), coef, g); err != nil {
		t.Fatal(err)
	}
	for _, ts := range g.Tensors() {
		out["grad."+ts.Name] = ts.Data
	}
	out["logits"] = extendAll(t, m, b, ws, want.sequences())
	return out
}

func TestEveryFamilyHasAGolden(t *testing.T) {
	have := map[Family]bool{}
	for _, folder := range goldens {
		c, err := ReadConfig("testdata/" + folder + "/config.json")
		if err != nil {
			t.Fatal(err)
		}
		have[c.Family] = true
	}
	for _, f := range families {
		if !have[f.name] {
			t.Errorf("no golden of the registered family %s", f.name)
		}
	}
}

func TestLogitsLogProbsAndGradientsAreThoseOfPyTorch(t *testing.T) {
	onEveryPath(t, func(t *testing.T, b *cpu.Backend) {
		for _, folder := range goldens {
			want := readGolden(t, folder)
			for name, got := range results(t, b, folder, want) {
				near(t, folder+" "+name, got, want.data(t, name), 1e-5)
			}
		}
	})
}

// A sequence of 2,000 tokens: rotary angles of far positions, and a softmax over many keys, read piece by piece from a cache.
func TestLogitsOfALongSequenceAreThoseOfPyTorch(t *testing.T) {
	want := readGolden(t, "llama-long")
	sequence := make([]int32, len(want.data(t, "ids")))
	for i, id := range want.data(t, "ids") {
		sequence[i] = int32(id)
	}
	onEveryPath(t, func(t *testing.T, b *cpu.Backend) {
		m, err := load(b, "testdata/llama-long")
		if err != nil {
			t.Fatal(err)
		}
		cache := newKVCache(b, m.Config, (len(sequence)+BlockTokens-1)/BlockTokens)
		span := Span{Want: true}
		for i := range (len(sequence) + BlockTokens - 1) / BlockTokens {
			span.Blocks = append(span.Blocks, i)
		}
		var got []float32
		for _, at := range want.data(t, "positions") {
			end := int(at) + 1
			span.IDs = sequence[span.Start:end]
			logits, err := m.Extend(t.Context(), nil, []Span{span}, cache)
			if err != nil {
				t.Fatal(err)
			}
			got, span.Start = append(got, logits...), end
		}
		near(t, "logits", got, want.data(t, "logits"), 1e-5)
	})
}

// relative is the norm of the difference over the norm of want.
func relative(got, want []float32) float64 {
	difference, size := 0.0, 0.0
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		difference, size = difference+d*d, size+float64(w)*float64(w)
	}
	return math.Sqrt(difference / size)
}

// The oracle is PyTorch's float64 run; the bound is twice the smaller of the errors of a bfloat16 model and of autocast.
func TestErrorsInBF16AreAtMostTwiceThoseOfPyTorchs(t *testing.T) {
	onEveryPath(t, func(t *testing.T, b *cpu.Backend) {
		for _, folder := range goldens {
			want := readGolden(t, folder)
			got := results(t, b, folder, want, WithPrecision(PrecisionBF16))
			if len(want.errors) < len(got)-1 {
				t.Fatalf("%s: errors of %d tensors, want those of all but the entropy, %d", folder, len(want.errors), len(got)-1)
			}
			for i, name := range want.errors {
				theirs := float64(min(want.data(t, "bf16")[i], want.data(t, "autocast")[i]))
				if ours := relative(got[name], want.data(t, name)); !(ours > 0 && ours <= 2*theirs) {
					t.Errorf("%s: %s is off by %.2e, PyTorch's by %.2e", folder, name, ours, theirs)
				}
			}
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
	logits, err := m.Extend(t.Context(), ws, spans, newKVCache(b, m.Config, 2*len(spans), WithPrecision(m.precision)))
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

func TestAdamWIsThatOfPyTorch(t *testing.T) {
	for _, folder := range goldens {
		want := readGolden(t, folder)
		m, err := Load("testdata/" + folder)
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, p := range m.Params() {
			end, ok := want.tensors["adamw.w."+p.Name]
			if !ok {
				continue
			}
			tried++
			mom, vel := make([]float32, len(p.Data)), make([]float32, len(p.Data))
			for step := range int64(3) {
				g := slices.Clone(want.data(t, "grad."+p.Name))
				for i := range g {
					g[i] *= 1 - 0.75*float32(step)
				}
				c := kernels.AdamWStep{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Step: step + 1, Scale: 1}
				if err := AdamW(t.Context(), p.Data, mom, vel, g, c); err != nil {
					t.Fatal(err)
				}
			}
			near(t, folder+" weights "+p.Name, p.Data, end.Data, 1e-6)
			near(t, folder+" first moments "+p.Name, mom, want.data(t, "adamw.m."+p.Name), 1e-6)
			near(t, folder+" second moments "+p.Name, vel, want.data(t, "adamw.v."+p.Name), 1e-6)
		}
		if tried < 3 {
			t.Errorf("%s: AdamW of %d tensors was compared, want at least 3", folder, tried)
		}
	}
}
