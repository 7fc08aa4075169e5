package verify

import (
	"testing"
	"time"
)

func TestMeasuredPairsAreWhatTheyClaim(t *testing.T) {
	counts := map[Outcome]int{}
	for _, p := range IntegerPairs(1600) {
		counts[Judge(p.Gold, p.Prediction).Outcome]++
	}
	if counts[Correct] != 800 || counts[Wrong] != 800 {
		t.Errorf("integer pairs are %v, want half correct and half wrong", counts)
	}
	for _, p := range SymbolicPairs(1) {
		if v := Judge(p.Gold, p.Prediction); v.Outcome != Unknown {
			t.Errorf("%v is %+v natively, want unknown", p, v)
		}
	}
	if rate := MeasureIntegers(50 * time.Millisecond); rate <= 0 {
		t.Errorf("rate %v, want a positive one", rate)
	}
}

func TestSymbolicChecksAreMeasured(t *testing.T) {
	median, checks, err := MeasureSymbolic(deadline(t), pool(t))
	if err != nil || checks != 4*len(symbolicForms) || median <= 0 {
		t.Errorf("median %v of %d checks, %v", median, checks, err)
	}
	t.Logf("median %v of %d checks", median, checks)
}

func BenchmarkIntegerVerdicts(b *testing.B) {
	pairs := IntegerPairs(4096)
	for i := range b.N {
		p := pairs[i%len(pairs)]
		Judge(p.Gold, p.Prediction)
	}
}

func BenchmarkPlainIntegerVerdicts(b *testing.B) {
	for range b.N {
		Judge("204", "204")
	}
}
