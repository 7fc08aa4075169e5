package activities

import (
	"math"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/store"
)

func answered(outcome agent.Outcome, answers ...string) []ended {
	var out []ended
	for _, a := range answers {
		out = append(out, ended{outcome: outcome, answer: a})
	}
	return out
}

// scored journals an evaluation and scores it.
func scored(t *testing.T, st store.Store, problems ...[]ended) EvalResult {
	t.Helper()
	for i, g := range problems {
		putGroup(t, st, SliceInput{Run: benchRun, Stage: "one", Purpose: PurposeEval, Round: "mid", Ordinal: i}, g, asMade)
	}
	b := process(t, st)
	return call[EvalResult](b, b.sco.Score, scoreOf(len(problems), len(problems[0])))
}

func scoreOf(count, samples int) ScoreInput {
	return ScoreInput{Run: benchRun, Stage: "one", Name: "mid", Count: count, Samples: samples, Weights: toy.first}
}

func TestAScoreIsThatOfItsJournal(t *testing.T) {
	st, p := toyRun(t)
	busy := ended{outcome: agent.Wrong, calls: 3, errors: 1, truncated: true}
	r := scored(t, st,
		append(answered(agent.Correct, "7"), answered(agent.Wrong, "8", "8", "9")...),             // 1 of 4; the majority is wrong
		append(answered(agent.Correct, "7", "7"), answered(agent.Wrong, "1", "2")...),             // 2 of 4; the majority is right
		append(answered(agent.Wrong, "1", "2"), ended{outcome: agent.Unknown, answer: "x"}, busy), // 0 of 4
	)
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("avg@4", r.Avg, (1./4+2./4+0)/3)
	near("maj@4", r.Maj, 1./3)
	near("pass@4", r.Pass, 2./3)
	near("calls a problem", r.CallsPerProblem, 3./12)
	near("tool error share", r.ToolErrorShare, 1./3)
	near("tokens a response", r.TokensPerResponse, 2)
	if r.Unknown != 1 || r.Version != p.first.Version || r.Problems != 3 || r.Samples != 4 {
		t.Errorf("%+v, want one unknown verdict beside the score of %s", r, p.first.Version)
	}
	if !(0 <= r.AvgLow && r.AvgLow <= r.Avg && r.Avg <= r.AvgHigh && r.AvgHigh <= 0.5) {
		t.Errorf("interval [%v, %v] around %v, want it within [0, 0.5]", r.AvgLow, r.AvgHigh, r.Avg)
	}
	b := process(t, st)
	if again := call[EvalResult](b, b.sco.Score, scoreOf(3, 4)); again != r {
		t.Errorf("scored again: %+v, want %+v", again, r)
	}
}

func TestSpellingsOfOneIntegerAreOneVote(t *testing.T) {
	st, _ := toyRun(t)
	group := append(answered(agent.Correct, "408", "408.", "0408", "$408$"), answered(agent.Wrong, "9", "9", "9", "10")...)
	if r := scored(t, st, group); r.Maj != 1 {
		t.Fatalf("maj@8 is %v: 408 has four votes in four spellings, 9 has three", r.Maj)
	}
}

func TestAScoreNeedsEverySample(t *testing.T) {
	st, _ := toyRun(t)
	putGroup(t, st, SliceInput{Run: benchRun, Stage: "one", Purpose: PurposeEval, Round: "mid"}, times(3, right()), asMade)
	b := process(t, st)
	refused(t, b, b.sco.Score, scoreOf(1, 4), "sample 3 of prompt 0 is not final")
	refused(t, b, b.sco.Score, scoreOf(0, 4), "no problems")
}

func TestAReportTellsOfTheRun(t *testing.T) {
	st, _, _ := undisturbed(t, 2)
	b := process(t, st)
	r := call[ReportResult](b, b.sco.WriteReport, ReportInput{Run: benchRun})
	page := string(get(t, st, r.Report.Key))
	for _, words := range []string{benchRun, "Fine-tuning loss", "Reward (mean of the round)", "million parameters", "GFLOP to train"} {
		if !strings.Contains(page, words) {
			t.Errorf("the report does not say %q", words)
		}
	}
}
