package rl

import "testing"

func TestSTaRsStepsAddUp(t *testing.T) {
	sum := 0
	for i := range 12 {
		n, err := STaRSteps(i+1, STaRFirstSteps, STaRGrowth)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if got, err := STaRTotal(12, STaRFirstSteps, STaRGrowth); err != nil || got != sum {
		t.Errorf("twelve iterations have %d steps (%v), want %d", got, err, sum)
	}
	if n, err := STaRTotal(999, 1e6, 1); err != nil || n != 999e6 {
		t.Errorf("without growth %d steps (%v)", n, err)
	}
	if _, err := STaRTotal(500, 40, 1.2); err == nil {
		t.Error("steps beyond every bound are counted")
	}
}

func TestARoundOfSTaRHasNoProblemTwiceAndAnEpochTakesAll(t *testing.T) {
	for _, c := range []struct{ prompts, n, rounds, size int }{{0, 7, 1, 7}, {7, 7, 1, 7}, {9, 7, 1, 7}, {3, 7, 2, 3}, {1, 7, 7, 1}, {4, 7, 1, 4}} {
		seen := map[int]bool{}
		for i := 1; i <= 3*c.rounds; i++ {
			first, count := STaRRound(i, c.prompts, c.n)
			if count != c.size || first/c.n != (first+count-1)/c.n || first/c.n != (i-1)/c.rounds {
				t.Errorf("%d of %d: round %d has ordinals %d to %d, want %d of epoch %d", c.prompts, c.n, i, first, first+count-1, c.size, (i-1)/c.rounds)
			}
			for k := range count {
				if seen[first+k] {
					t.Errorf("%d of %d: round %d draws ordinal %d again", c.prompts, c.n, i, first+k)
				}
				seen[first+k] = true
			}
		}
	}
	if _, count := STaRRound(1, 0, 0); count != 0 {
		t.Error("a set without problems has a round")
	}
}

func TestSTaREndsAtThePlateauOrAfterItsIterations(t *testing.T) {
	for _, c := range []struct {
		scores     []float64
		iterations int
		window     int
		want       string
	}{
		{[]float64{0.2}, 3, 1, ""}, {[]float64{0.2, 0.3}, 3, 1, ""}, {[]float64{0.2, 0.205}, 3, 1, "plateau"}, {[]float64{0.2, 0.1}, 3, 2, ""},
		{[]float64{0.2, 0.1, 0.2}, 3, 2, "plateau"}, {[]float64{0.2, 0.3, 0.4, 0.5}, 3, 1, "iterations"}, {[]float64{0.2, 0.3, 0.4, 0.4}, 3, 1, "plateau"},
		{[]float64{0.5, 0.1, 0.6}, 9, 2, ""},
	} {
		if got := STaREnds(c.scores, c.iterations, c.window, 0.01); got != c.want {
			t.Errorf("%v of at most %d iterations, window %d: %q, want %q", c.scores, c.iterations, c.window, got, c.want)
		}
	}
}
