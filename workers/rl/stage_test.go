package rl

import (
	"reflect"
	"testing"
)

func observations(n int, f func(i int, o *Observation)) []Observation {
	h := make([]Observation, n)
	for i := range h {
		h[i] = Observation{Step: i + 1, RewardMean: 0.5, Entropy: 1, CallsMean: 2}
		if f != nil {
			f(i, &h[i])
		}
	}
	return h
}

func TestStagesEndAtTheirStep(t *testing.T) {
	for _, steps := range []int{300, 85, 125} {
		rule := StageRule{Steps: steps}
		if e := StageEnds(rule, observations(steps-1, nil)); e.Done {
			t.Errorf("stage of %d ended a step early", steps)
		}
		if e := StageEnds(rule, observations(steps, nil)); !e.Done || e.Reason != "steps" {
			t.Errorf("stage of %d did not end: %+v", steps, e)
		}
	}
}

func TestRejectedRoundsCountForRoundsButNotForSteps(t *testing.T) {
	h := observations(10, func(_ int, o *Observation) { o.Step = 0 })
	if e := StageEnds(StageRule{Steps: 5, Rounds: 11}, h); e.Done {
		t.Errorf("ended %+v", e)
	}
	if e := StageEnds(StageRule{Steps: 5, Rounds: 10}, h); !e.Done || e.Reason != "rounds" {
		t.Errorf("did not end by rounds: %+v", e)
	}
}

func TestStageEndsWhenProblemsBecameTooEasy(t *testing.T) {
	h := observations(6, func(i int, o *Observation) { o.AllCorrectShare = float64(i) / 5 })
	rule := StageRule{Steps: 100, MaxAllCorrect: 0.7, Window: 2}
	if e := StageEnds(rule, h[:5]); e.Done {
		t.Errorf("ended at a windowed share of 0.7: %+v", e)
	}
	if e := StageEnds(rule, h); e.Reason != "all_correct" {
		t.Errorf("did not end: %+v", e)
	}
	if e := StageEnds(rule, nil); e.Done {
		t.Error("ended before it began")
	}
}

func TestStageEndsWhenItsLengthLimitHoldsLearningBack(t *testing.T) {
	rule := StageRule{Steps: 300, Plateau: 0.01, MinTruncated: 0.1, Window: 4}
	for name, c := range map[string]struct {
		shape func(i int, o *Observation)
		want  int // rounds until the end; 0 is never
	}{
		"learning on, truncated":        {func(i int, o *Observation) { o.RewardMean, o.TruncatedShare = float64(i)/60, 0.2 }, 0},
		"at a standstill, not cut":      {func(i int, o *Observation) { o.RewardMean, o.TruncatedShare = 0.6, 0.05 }, 0},
		"at a standstill, cut":          {func(i int, o *Observation) { o.RewardMean, o.TruncatedShare = 0.6, 0.1 }, 8},
		"rising for 20 rounds, cut":     {func(i int, o *Observation) { o.RewardMean, o.TruncatedShare = min(float64(i)/20, 1), 0.12 }, 28},
		"cut more and more, standstill": {func(i int, o *Observation) { o.RewardMean, o.TruncatedShare = 0.6, float64(i)/100 }, 13},
	} {
		ended := 0
		for n := 1; n <= 40 && ended == 0; n++ {
			if e := StageEnds(rule, observations(n, c.shape)); e.Done {
				if ended = n; e.Reason != "plateau" {
					t.Errorf("%s: ended for %q", name, e.Reason)
				}
			}
		}
		if ended != c.want {
			t.Errorf("%s: ended after %d rounds, want %d", name, ended, c.want)
		}
	}
}

func TestHealthyRunRaisesNoAlarm(t *testing.T) {
	if a := Alarms(DefaultLimits(), observations(50, nil)); a != nil {
		t.Errorf("alarms %v", a)
	}
}

func TestTrap12CollapseRaisesAlarmsInFixedOrder(t *testing.T) {
	h := observations(20, func(i int, o *Observation) {
		if i >= 10 {
			o.RewardMean, o.TruncatedShare, o.DuplicateShare, o.UnknownShare, o.Entropy = 0.1, 0.9, 0.8, 0.01, 0.001
		}
	})
	var names []string
	for _, a := range Alarms(DefaultLimits(), h) {
		names = append(names, a.Name)
		if a.String() == "" {
			t.Error("an alarm has no sentence")
		}
	}
	want := []string{"reward_drop", "truncated_share", "duplicate_share", "unknown_share", "entropy_low"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("alarms %v, want %v", names, want)
	}
	if a := Alarms(DefaultLimits(), h[:3]); a != nil {
		t.Errorf("alarms %v before a window was full", a)
	}
}

func TestOfflineFilterDropsOnlyEightOfEight(t *testing.T) {
	all := []bool{true, true, true, true, true, true, true, true}
	if !TooEasy(all) {
		t.Error("8/8 was kept")
	}
	all[7] = false
	if TooEasy(all) || TooEasy(nil) {
		t.Error("7/8 or an unsampled problem was dropped")
	}
}

func TestTrap24BestCheckpointIsTheEarliestHighest(t *testing.T) {
	if got := Best([]float64{0.1, 0.7, 0.7, 0.2}); got != 1 {
		t.Errorf("best is %d, want 1", got)
	}
	if Best(nil) != -1 {
		t.Error("no scores have a best")
	}
}
