package rl

import (
	"math"
	"math/rand"
	"slices"
	"testing"
)

// group makes a positives (indices first) and b negatives.
func group(a, b int) []Sample {
	samples := make([]Sample, a+b)
	for i := range samples {
		samples[i] = Sample{Index: i, Turns: 1, AnswerOpen: 1, AnswerClose: 1, AnswerPairs: 1}
		if i < a {
			samples[i].Reward = 1
		}
	}
	return samples
}

// draws is a uniform func over a fixed random table.
func draws(seed int64) func(i int) float64 {
	r := rand.New(rand.NewSource(seed))
	table := make([]float64, 1<<12)
	for i := range table {
		table[i] = r.Float64()
	}
	return func(i int) float64 { return table[i] }
}

func mustSelect(t *testing.T, g []Sample, target int, o SelectOptions, u func(int) float64) Selection {
	t.Helper()
	s, err := Select(g, target, o, u)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keptPositives(g []Sample, s Selection) int {
	n := 0
	for _, i := range s.Kept {
		for _, x := range g {
			if x.Index == i && x.Positive() {
				n++
			}
		}
	}
	return n
}

func TestReleasedRoCKeepsThePublishedNumberOfPositives(t *testing.T) {
	want := []int{1, 2, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 8, 8, 8, 9, 10, 10, 10, 11, 12, 12, 12, 13, 14, 14, 14, 14, 15}
	for a := 1; a <= 31; a++ {
		g := group(a, 32-a)
		s := mustSelect(t, g, 16, SelectOptions{Method: RoCReleased, MinPositive: 2, MinNegative: 2}, nil)
		if got := keptPositives(g, s); got != want[a-1] || len(s.Kept) != 16 {
			t.Errorf("a=%d: kept %d positives of %d samples, want %d of 16", a, got, len(s.Kept), want[a-1])
		}
	}
	for a, want := range map[int]int{0: 0, 32: 16} {
		g := group(a, 32-a)
		s := mustSelect(t, g, 16, SelectOptions{Method: RoCReleased, MinPositive: 2, MinNegative: 2}, nil)
		if got := keptPositives(g, s); got != want || len(s.Kept) != 16 {
			t.Errorf("a=%d: kept %d positives of %d, want %d of 16", a, got, len(s.Kept), want)
		}
	}
}

func TestPaperRoCKeepsHalfOfTheNegativesRoundedDown(t *testing.T) {
	for a := 0; a <= 32; a++ {
		g := group(a, 32-a)
		s := mustSelect(t, g, 16, SelectOptions{}, draws(1))
		if got, want := keptPositives(g, s), 16-(32-a)/2; got != want || len(s.Kept) != 16 || len(s.Dropped) != 16 {
			t.Errorf("a=%d: kept %d positives of %d, want %d of 16", a, got, len(s.Kept), want)
		}
	}
}

func TestTrap26EverySplitSumsToTheTargetAlsoWhenOdd(t *testing.T) {
	for _, method := range []Method{RoCPaper, RoCReleased} {
		for _, min := range []int{0, 1, 2} {
			for target := max(1, 2*min); target <= 17; target++ {
				for m := target; m <= 2*target+3; m++ {
					for a := 0; a <= m; a++ {
						s := mustSelect(t, group(a, m-a), target, SelectOptions{Method: method, MinPositive: min, MinNegative: min}, draws(2))
						if len(s.Kept) != target || len(s.Kept)+len(s.Dropped) != m {
							t.Fatalf("%s min=%d M=%d a=%d target=%d kept %d", method, min, m, a, target, len(s.Kept))
						}
					}
				}
			}
		}
	}
}

func TestMinimumsKeepTheRareKind(t *testing.T) {
	o := SelectOptions{MinPositive: 2, MinNegative: 2}
	for a, want := range map[int]int{1: 1, 2: 2, 3: 2, 31: 15, 30: 14} {
		g := group(a, 32-a)
		if got := keptPositives(g, mustSelect(t, g, 16, o, draws(3))); got != want {
			t.Errorf("a=%d: kept %d positives, want %d", a, got, want)
		}
	}
	if _, err := Select(group(2, 2), 3, o, draws(3)); err == nil {
		t.Error("minimums 2+2 were accepted for a target of 3")
	}
}

func TestTrap26ReleasedRoCSortsPositivesByPenaltyAndTiesKeepSampleOrder(t *testing.T) {
	g := group(4, 4)
	g[0].Calls, g[0].CallErrors = 2, 2 // p_err 1
	g[2].Calls = 1                     // p_err 0
	// g[1], g[3]: no calls, 0.5 each
	s := mustSelect(t, g, 4, SelectOptions{Method: RoCReleased}, nil)
	if want := []int{1, 2, 4, 5}; !slices.Equal(s.Kept, want) {
		t.Errorf("kept %v, want %v", s.Kept, want)
	}
}

func TestSelectionDoesNotDependOnCompletionOrder(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for _, method := range []Method{RoCPaper, RoCReleased} {
		g := group(13, 19)
		want := mustSelect(t, g, 16, SelectOptions{Method: method}, draws(5))
		for range 20 {
			r.Shuffle(len(g), func(i, j int) { g[i], g[j] = g[j], g[i] })
			if got := mustSelect(t, g, 16, SelectOptions{Method: method}, draws(5)); !slices.Equal(got.Kept, want.Kept) {
				t.Fatalf("%s: kept %v after shuffling, want %v", method, got.Kept, want.Kept)
			}
		}
	}
}

func TestTrap26PaperPositivesAreDrawnInverselyToPenaltyAndNegativesUniformly(t *testing.T) {
	// Two positives with penalties 0.5 and 1.5: the first is kept with probability (1/0.5)/(1/0.5+1/1.5) = 3/4.
	g := group(2, 2)
	g[1].AnswerOpen = 0 // p_format 1, p_total 1.5
	r := rand.New(rand.NewSource(6))
	const n = 40000
	first, negative := 0, 0
	for range n {
		s := mustSelect(t, g, 2, SelectOptions{Epsilon: 1e-12}, func(int) float64 { return r.Float64() })
		first += b2i(slices.Contains(s.Kept, 0))
		negative += b2i(slices.Contains(s.Kept, 2))
	}
	for name, c := range map[string]struct{ got, want float64 }{
		"positive": {float64(first) / n, 0.75}, "negative": {float64(negative) / n, 0.5},
	} {
		if math.Abs(c.got-c.want) > 5*math.Sqrt(c.want*(1-c.want)/n) {
			t.Errorf("%s kept with frequency %.4f, want %.4f", name, c.got, c.want)
		}
	}
}

func TestSpotlessPositivesGoFirst(t *testing.T) {
	g := group(8, 8)
	for _, i := range []int{1, 3, 4, 6} {
		g[i].Calls = 3
	}
	for seed := range int64(50) {
		s := mustSelect(t, g, 8, SelectOptions{}, draws(seed))
		if !slices.Equal(s.Kept[:4], []int{1, 3, 4, 6}) {
			t.Fatalf("seed %d kept positives %v", seed, s.Kept[:4])
		}
	}
}

func TestTrap13SmallGroupIsDroppedWholeAndExactGroupKeptWhole(t *testing.T) {
	for _, method := range []Method{RoCPaper, RoCReleased} {
		small := mustSelect(t, group(3, 4), 8, SelectOptions{Method: method}, draws(7))
		if len(small.Kept) != 0 || len(small.Dropped) != 7 || small.Dropped[0].Reason != GroupTooSmall {
			t.Errorf("%s: group of 7 for target 8 gave %+v", method, small)
		}
		exact := mustSelect(t, group(3, 5), 8, SelectOptions{Method: method}, draws(7))
		if len(exact.Kept) != 8 || len(exact.Dropped) != 0 {
			t.Errorf("%s: group of 8 for target 8 gave %+v", method, exact)
		}
	}
}

func TestTrap26EveryRemovalHasAReason(t *testing.T) {
	for _, d := range mustSelect(t, group(8, 8), 8, SelectOptions{}, draws(8)).Dropped {
		if want := map[bool]Reason{true: PositiveNotSelected, false: NegativeNotSelected}[d.Index < 8]; d.Reason != want {
			t.Errorf("sample %d dropped as %q, want %q", d.Index, d.Reason, want)
		}
	}
}

func TestKeepAllTrainsOnEveryRollout(t *testing.T) {
	if s := mustSelect(t, group(3, 5), 99, SelectOptions{Method: KeepAll}, nil); len(s.Kept) != 8 {
		t.Errorf("kept %d of 8", len(s.Kept))
	}
}

func TestBrokenGroupsAreRefused(t *testing.T) {
	for name, g := range map[string][]Sample{
		"duplicate index": {{Index: 1}, {Index: 1}},
		"NaN reward":      {{Index: 1, Reward: math.NaN()}},
		"too many errors": {{Index: 1, Calls: 1, CallErrors: 2}},
	} {
		if _, err := Select(g, 1, SelectOptions{}, draws(9)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := Select(group(1, 1), 1, SelectOptions{Method: "best"}, draws(9)); err == nil {
		t.Error("unknown method was accepted")
	}
}

func TestEqualRewardGroupsAreRejected(t *testing.T) {
	for want, g := range map[GroupClass][]Sample{
		GroupAllZero: group(0, 4), GroupAllNonzero: group(4, 0), GroupMixed: group(1, 3), GroupEmpty: nil,
	} {
		if got := Classify(g); got != want {
			t.Errorf("classified %q, want %q", got, want)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
