package activities

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/train"
)

func TestTrap12AnAlarmIsReportedWithTheStepThatRaisedIt(t *testing.T) {
	healthy := func(n int) []StepMetrics {
		all := make([]StepMetrics, n)
		for i := range all {
			all[i] = StepMetrics{Step: int64(i + 1), Iteration: i, RatioMax: 1, Reward: 0.5, Entropy: 1, TruncatedShare: 0.1, Groups: 4, AllCorrect: 1, CallsPerSample: 2}
		}
		return all
	}
	if got := alarms("one", healthy(40)); len(got) != 0 {
		t.Errorf("a healthy stage raised %v", got)
	}
	for want, spoil := range map[string]func(m *StepMetrics){
		"truncated_share": func(m *StepMetrics) { m.TruncatedShare = 0.9 },
		"unknown_share":   func(m *StepMetrics) { m.UnknownShare = 0.01 },
		"duplicate_share": func(m *StepMetrics) { m.DuplicateShare = 0.8 },
		"reward_drop":     func(m *StepMetrics) { m.Reward = 0 },
		"entropy_low":     func(m *StepMetrics) { m.Entropy = 0 },
	} {
		all := healthy(40)
		for i := 20; i < len(all); i++ {
			spoil(&all[i])
		}
		got := alarms("one", all)
		if len(got) != 1 || !strings.HasPrefix(got[0].Value, want+" is ") || !strings.Contains(got[0].Value, "first at step 2") {
			t.Errorf("%s: %+v, want one alarm from a step behind 20", want, got)
		}
	}
}

func TestTrap05ARatioOtherThanOneOnPolicyIsAnAlarm(t *testing.T) {
	var all []StepMetrics
	for i := range 12 { // two updates a round: the second is off its policy, and a skipped step measured nothing
		all = append(all, StepMetrics{Step: int64(i + 1), Iteration: i / 2, RatioMax: 1 + 0.3*float64(i%2), Reward: 0.5, Entropy: 1})
	}
	all[4].Skipped, all[4].RatioMax = "loss is NaN", 0
	if got := alarms("one", all); len(got) != 0 {
		t.Fatalf("a healthy stage raised %v", got)
	}
	all[8].RatioMax, all[10].RatioMax = 1.0000001, 2
	if got := alarms("one", all); len(got) != 1 || !strings.Contains(got[0].Value, "ratio is 1.0000001 on") || !strings.HasSuffix(got[0].Value, "first at step 9") {
		t.Fatalf("%+v, want one alarm at step 9", got)
	}
}

func TestTrap11SkippedStepsAndLostGroupsAreToldInTheReport(t *testing.T) {
	var all []StepMetrics
	for i := range 6 { // two steps a round
		all = append(all, StepMetrics{Step: int64(i + 1), Iteration: i / 2, RatioMax: 1, Groups: 4, Reward: 0.5, Entropy: 1})
	}
	if got := append(skips("one", all), losses("one", all)...); len(got) != 0 {
		t.Fatalf("a healthy stage raised %v", got)
	}
	all[2].LostGroups, all[3].LostGroups, all[4].LostGroups, all[5].LostGroups = 2, 2, 1, 1
	all[3].Skipped, all[5].Skipped = "loss is NaN", "gradient norm is +Inf"
	if got := skips("one", all); len(got) != 1 || got[0].Value != "2 of 6 steps changed no weight, first step 4: loss is NaN" {
		t.Errorf("%v, want both skipped steps and the reason of the first", got)
	}
	if got := alarms("one", all); len(got) != 1 || got[0].Value != "3 groups were dropped for a sample that the infrastructure lost" {
		t.Errorf("%v, want the lost groups of two rounds, once each", got)
	}
}

func TestFiguresTellUnknownVerdictsAndRepeatedCalls(t *testing.T) {
	st, _ := toyRun(t)
	group := append(times(8, right()), times(7, wrong())...)
	group[0].calls = 2
	group = append(group, ended{outcome: "unknown"})
	_, b := selected(t, st, group)
	if b.Unknown != 1 || b.Duplicates != 0 || b.UnknownGroups != 1 || b.LostGroups != 0 {
		t.Errorf("figures %+v, want one unknown verdict and its group", b)
	}
	x := group[0].trajectory(30, 0)
	x.Turns[0].Calls[1] = x.Turns[0].Calls[0]
	b = batch{}
	b.observe([]agent.Trajectory{x, x})
	if m := b.metrics(TrainInput{}, train.Metrics{}); m.DuplicateShare != 0.5 || m.UnknownShare != 0 {
		t.Errorf("duplicates are %v of the calls, want half", m.DuplicateShare)
	}
}
