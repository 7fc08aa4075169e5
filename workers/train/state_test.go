package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/model"
)

func TestAStateIsLoadedWholeOrNotAtAll(t *testing.T) {
	source := NewState(tinyModel(t, 1))
	b := someBatch(t, source.Model, 3, 1)
	if _, err := Step(t.Context(), source, b, 1, testObjective(), testOptimizer()); err != nil {
		t.Fatal(err)
	}
	good := bits(source)
	for want, spoil := range map[string]func([]model.Tensor) []model.Tensor{
		"is missing":   func(ts []model.Tensor) []model.Tensor { return ts[1:] },
		"is unknown":   func(ts []model.Tensor) []model.Tensor { return append(ts, model.Tensor{Name: "x"}) },
		"occurs twice": func(ts []model.Tensor) []model.Tensor { return append(ts, ts[0]) },
		"has shape":    func(ts []model.Tensor) []model.Tensor { ts[2].Shape = []int{1}; return ts },
		"counters":     func(ts []model.Tensor) []model.Tensor { ts[len(ts)-1].Data = []float32{0, 0.5, 0, 0}; return ts },
	} {
		s := NewState(tinyModel(t, 2))
		before := bits(s)
		if err := s.LoadTensors(spoil(slices.Clone(good))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("refusal is %v, want one with %q", err, want)
		}
		if name := differ(before, bits(s)); name != "" {
			t.Errorf("%s: refused state changed %q", want, name)
		}
	}
	s := NewState(tinyModel(t, 2))
	if err := s.LoadTensors(good); err != nil {
		t.Fatal(err)
	}
	if name := differ(good, bits(s)); name != "" || s.AppliedStep != 1 || s.Updates != 1 {
		t.Errorf("loaded state differs in %q, has applied %d with %d updates", name, s.AppliedStep, s.Updates)
	}
}

func TestCountersSurviveBeyondFloatPrecision(t *testing.T) {
	s := NewState(tinyModel(t, 1))
	s.AppliedStep, s.Updates = 1<<40+12345, 1<<24+1
	back := NewState(tinyModel(t, 1))
	if err := back.LoadTensors(bits(s)); err != nil {
		t.Fatal(err)
	}
	if back.AppliedStep != s.AppliedStep || back.Updates != s.Updates {
		t.Errorf("counters came back as %d and %d, want %d and %d", back.AppliedStep, back.Updates, s.AppliedStep, s.Updates)
	}
}

func TestTheWeightsDigestNoticesOneBit(t *testing.T) {
	m := tinyModel(t, 1)
	s, before := NewState(m), WeightsDigest(m)
	if again := WeightsDigest(tinyModel(t, 1)); again != before {
		t.Errorf("equal weights have digests %s and %s", before, again)
	}
	s.ResetOptimizer()
	p := m.Params()
	p[len(p)-1].Data[0] += 1e-7
	if s.WeightsDigest() == before {
		t.Error("digest did not notice a changed weight")
	}
}
