package rl

import "fmt"

// Observation is what the stage controller sees of one rollout round: deterministic metrics only.
type Observation struct {
	Step            int     // optimizer steps applied in this stage so far
	RewardMean      float64 // mean reward of all rollouts of the round
	TruncatedShare  float64 // share of rollouts that ran out of tokens or turns
	AllCorrectShare float64 // share of groups rejected as all-correct
	Entropy         float64 // mean entropy per sampled token, nats
	CallsMean       float64 // tool calls per rollout
	DuplicateShare  float64 // share of tool calls that repeat an earlier call of their trajectory
	UnknownShare    float64 // share of rollouts whose verdict is unknown
}

// StageRule says when a stage ends. A rule of 0 is off.
type StageRule struct {
	Steps         int     // end after so many applied steps (paper: 300, 85, 125)
	Rounds        int     // end after so many rollout rounds, steps or not: a stage without signal must end too
	MaxAllCorrect float64 // end when the all-correct share of the last Window rounds exceeds this (paper, stage 2: 0.7)
	// End when the length limit holds learning back (paper, stage 1: truncation settles near 0.1 while reward stands still): the mean
	// reward of the last Window rounds is less than Plateau above that of the Window before, and their truncated share at least
	// MinTruncated.
	Plateau      float64
	MinTruncated float64
	Window       int // rounds averaged; 0 means 1
}

// Ending says that a stage is over, and by which rule.
type Ending struct {
	Done   bool
	Reason string // "steps", "rounds", "all_correct" or "plateau"; "" while the stage goes on
}

// StageEnds decides after each round from the stage's whole history, oldest first (rStar2-Agent §4.3).
func StageEnds(rule StageRule, history []Observation) Ending {
	if len(history) == 0 {
		return Ending{}
	}
	switch last := history[len(history)-1]; {
	case rule.Steps > 0 && last.Step >= rule.Steps:
		return Ending{true, "steps"}
	case rule.Rounds > 0 && len(history) >= rule.Rounds:
		return Ending{true, "rounds"}
	case rule.MaxAllCorrect > 0 && tooEasy(rule, history):
		return Ending{true, "all_correct"}
	case rule.Plateau > 0 && standsStill(rule, history):
		return Ending{true, "plateau"}
	}
	return Ending{}
}

func tooEasy(rule StageRule, history []Observation) bool {
	window := max(1, rule.Window)
	if len(history) < window {
		return false
	}
	return meanOf(history[len(history)-window:], func(o Observation) float64 { return o.AllCorrectShare }) > rule.MaxAllCorrect
}

func standsStill(rule StageRule, history []Observation) bool {
	window := max(1, rule.Window)
	if len(history) < 2*window {
		return false
	}
	recent, before := history[len(history)-window:], history[len(history)-2*window:len(history)-window]
	reward := func(o Observation) float64 { return o.RewardMean }
	truncated := meanOf(recent, func(o Observation) float64 { return o.TruncatedShare })
	return meanOf(recent, reward)-meanOf(before, reward) < rule.Plateau && truncated >= rule.MinTruncated
}

// Limits bound the health of a run. A limit of 0 is off.
type Limits struct {
	RewardDrop     float64 // fall of the windowed reward below its own best
	TruncatedShare float64
	EntropyLow     float64 // nats per token
	EntropyHigh    float64 // nats per token
	DuplicateShare float64
	UnknownShare   float64
	Window         int // rounds averaged; 0 means 1
}

// DefaultLimits raise an alarm where the papers saw runs go wrong.
func DefaultLimits() Limits {
	return Limits{
		RewardDrop:     0.2,   // after step 510 reward fell for good; noise of a batch is far smaller
		TruncatedShare: 0.5,   // about 0.1 is normal in stage 1 and corrects itself
		EntropyLow:     0.005, // below this nothing is explored
		EntropyHigh:    5,     // a policy near uniform over the vocabulary
		DuplicateShare: 0.5,   // the failure users report: endless repeated tool calls
		UnknownShare:   0.001, // unknown verdicts come from infrastructure
		Window:         5,
	}
}

// Alarm is one limit crossed.
type Alarm struct {
	Name  string // the limit's name in lower snake case
	Value float64
	Limit float64
}

// String says the alarm in a sentence for people.
func (a Alarm) String() string {
	return fmt.Sprintf("%s is %.4g, limit %.4g", a.Name, a.Value, a.Limit)
}

// Alarms checks the last Window rounds of a history, oldest first, against limits. The order of alarms is fixed. Until a
// window is full there is no alarm.
func Alarms(limits Limits, history []Observation) []Alarm {
	window := max(1, limits.Window)
	if len(history) < window {
		return nil
	}
	recent := func(f func(Observation) float64) float64 { return meanOf(history[len(history)-window:], f) }
	var alarms []Alarm
	above := func(name string, value, limit float64) {
		if limit > 0 && value > limit {
			alarms = append(alarms, Alarm{name, value, limit})
		}
	}
	above("reward_drop", rewardDrop(history, window), limits.RewardDrop)
	above("truncated_share", recent(func(o Observation) float64 { return o.TruncatedShare }), limits.TruncatedShare)
	above("duplicate_share", recent(func(o Observation) float64 { return o.DuplicateShare }), limits.DuplicateShare)
	above("unknown_share", recent(func(o Observation) float64 { return o.UnknownShare }), limits.UnknownShare)
	entropy := recent(func(o Observation) float64 { return o.Entropy })
	above("entropy_high", entropy, limits.EntropyHigh)
	if limits.EntropyLow > 0 && entropy < limits.EntropyLow {
		alarms = append(alarms, Alarm{"entropy_low", entropy, limits.EntropyLow})
	}
	return alarms
}

// rewardDrop is the fall of the last window's mean reward below the best window so far.
func rewardDrop(history []Observation, window int) float64 {
	reward := func(o Observation) float64 { return o.RewardMean }
	best := meanOf(history[:window], reward)
	for end := window + 1; end <= len(history); end++ {
		best = max(best, meanOf(history[end-window:end], reward))
	}
	return best - meanOf(history[len(history)-window:], reward)
}

func meanOf(history []Observation, f func(Observation) float64) float64 {
	var sum float64
	for _, o := range history {
		sum += f(o)
	}
	return sum / float64(len(history))
}

// TooEasy is the offline filter before stage 3: a problem that the policy solves in every one of its samples (8 of 8 in the
// paper) teaches nothing and is dropped. A problem without samples is kept.
func TooEasy(correct []bool) bool {
	for _, c := range correct {
		if !c {
			return false
		}
	}
	return len(correct) > 0
}

// Best returns the position of the highest score, the earliest among equals: the checkpoint to keep and to stop with. It is
// -1 for no scores.
func Best(scores []float64) int {
	best := -1
	for i, s := range scores {
		if best < 0 || s > scores[best] {
			best = i
		}
	}
	return best
}
