package rl

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestEveryNamedAlgorithmIsCompleteOrSaysWhatItLacks(t *testing.T) {
	for _, name := range Algorithms() {
		a, err := Preset(name)
		if err != nil || a.Name != name {
			t.Fatal(name, a.Name, err)
		}
		err = a.Check()
		if name == "dr-grpo" { // its constant is the stage's own
			if err == nil || !strings.Contains(err.Error(), "constant") {
				t.Errorf("%s without its constant: %v", name, err)
			}
			a.NormLength = 1024
			err = a.Check()
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Preset("ppo"); err == nil || !strings.Contains(err.Error(), "grpo-roc") {
		t.Errorf("unknown algorithm: %v", err)
	}
}

func TestTrap08PresetsDifferFromTheTableOfTheirPapersInNothing(t *testing.T) {
	type row struct {
		equal    EqualGroups
		norm     LossNorm
		clip     Clip
		beta     float64
		updates  int
		selected Method
	}
	for name, want := range map[string]row{
		"grpo-roc":     {RejectEqual, TokenMean, Clip{Low: 0.2, High: 0.28}, 0, 1, RoCPaper},
		"grpo":         {RejectEqual, TokenMean, Clip{Low: 0.2, High: 0.28}, 0, 1, KeepAll},
		"dapo":         {RefillEqual, TokenMean, Clip{Low: 0.2, High: 0.28, Dual: 10}, 0, 16, KeepAll},
		"deepseekmath": {KeepEqual, SequenceMean, Clip{Low: 0.2, High: 0.2}, 0.04, 1, KeepAll},
	} {
		a, _ := Preset(name)
		if got := (row{a.Equal, a.Norm, a.Clip, a.KLBeta, a.Updates, a.Selection}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestContradictoryParametersAreNamed(t *testing.T) {
	for word, change := range map[string]func(a *Algorithm){
		"max_rounds":          func(a *Algorithm) { a.MaxRounds = 3 },
		"sample for ever":     func(a *Algorithm) { a.Equal = RefillEqual },
		"overlong_ramp":       func(a *Algorithm) { a.Overlong = OverlongSoft },
		"loss_constant":       func(a *Algorithm) { a.NormLength = 5 },
		"kl_refresh":          func(a *Algorithm) { a.KLRefresh = 10 },
		"penalty":             func(a *Algorithm) { a.Penalty = ReleasedPenalty },
		"kl_estimator":        func(a *Algorithm) { a.KLEstimator = K1Estimator },
		"min_negative":        func(a *Algorithm) { a.MinNegative = 2 },
		"imitation":           func(a *Algorithm) { a.Imitate, a.KLBeta = true, 0.1 },
		"correct_per_problem": func(a *Algorithm) { a.PerProblem = 2 },
		"updates_per":         func(a *Algorithm) { a.Updates = 0 },
		"high_entropy":        func(a *Algorithm) { a.EntropyTop = 0 },
		"baseline":            func(a *Algorithm) { a.Baseline = "median" },
		"reward":              func(a *Algorithm) { a.Reward = "" },
		"equal_groups":        func(a *Algorithm) { a.Equal = "drop" },
	} {
		a, _ := Preset("grpo")
		change(&a)
		if err := a.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}

func TestSignedRewardsAndTheSoftPenaltyAddUp(t *testing.T) {
	a, _ := Preset("dapo")
	group := []Sample{{Index: 0, Reward: 1}, {Index: 1}, {Index: 2, Reward: 1}}
	got, err := a.Outcomes(group, []int{16384, 18432, 20480}, 20480)
	if err != nil || !slices.Equal(got, []float64{1, -1.5, 0}) {
		t.Errorf("%v, %v; want [1 -1.5 0]", got, err)
	}
	if _, err := a.Outcomes(group, []int{1}, 20480); err == nil {
		t.Error("one length for three rollouts accepted")
	}
}

func TestTrap14DynamicSamplingTakesGroupsByOrdinalAndNotByArrival(t *testing.T) {
	arrived := []Outcome{{7, GroupMixed}, {4, GroupAllZero}, {6, GroupMixed}, {3, GroupMixed}, {5, GroupAllNonzero}, {8, GroupMixed}}
	want := Filled{Take: []int{3, 6}, Surplus: []int{7, 8}, AllCorrect: 1, AllWrong: 1}
	for range 6 {
		arrived = append(arrived[1:], arrived[0])
		got, err := Fill(arrived, 2)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v, %v; want %+v", arrived, got, err, want)
		}
	}
	for name, bad := range map[string][]Outcome{"missing": {{1, GroupMixed}, {3, GroupMixed}}, "twice": {{1, GroupMixed}, {1, GroupMixed}}} {
		if _, err := Fill(bad, 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCorrectDistinctSamplesTrainInIndexOrder(t *testing.T) {
	group := []Sample{{Index: 5, Reward: 1}, {Index: 2}, {Index: 3, Reward: 1}, {Index: 1, Reward: 1}, {Index: 4, Reward: 1}}
	text := []string{"a", "b", "c", "a", "d"}
	got, err := KeepCorrect(group, func(i int) string { return text[i] }, 0)
	if err != nil || !slices.Equal(got, []int{3, 2, 4}) {
		t.Errorf("kept %v, %v; want positions [3 2 4]", got, err)
	}
	if got, _ := KeepCorrect(group, func(i int) string { return text[i] }, 2); !slices.Equal(got, []int{3, 2}) {
		t.Errorf("at most two: %v", got)
	}
	if _, err := KeepCorrect(group, func(int) string { return "" }, -1); err == nil {
		t.Error("negative limit accepted")
	}
}

func TestSTaRTrainsLongerEachIterationUntilItsPlateau(t *testing.T) {
	for iteration, want := range map[int]int{1: 40, 2: 48, 3: 57, 10: 206, 30: 7912} { // 7,912 is the paper's last iteration (App H)
		if got, err := STaRSteps(iteration, STaRFirstSteps, STaRGrowth); err != nil || got != want {
			t.Errorf("iteration %d: %d steps, want %d (%v)", iteration, got, want, err)
		}
	}
	for _, bad := range []func() (int, error){
		func() (int, error) { return STaRSteps(0, 40, 1.2) }, func() (int, error) { return STaRSteps(1, 40, math.NaN()) },
		func() (int, error) { return STaRSteps(1e6, 40, 1.2) },
	} {
		if _, err := bad(); err == nil {
			t.Error("impossible schedule accepted")
		}
	}
	scores := []float64{0.1, 0.3, 0.5, 0.5, 0.49}
	if Plateau(scores[:3], 2, 0.01) || Plateau(scores[:4], 2, 0.01) || !Plateau(scores, 2, 0.01) {
		t.Error("the plateau is two iterations without gain")
	}
}
