package display

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workflows"
)

// training is a run in the middle of stage2's third of ten rounds.
func training(done int) []workflows.Progress {
	return []workflows.Progress{
		{Run: "r", Phase: workflows.PhaseRollout, Stage: "stage2", Tokens: 1000, Child: "r/stage2"},
		{Run: "r", Phase: workflows.PhaseRollout, Stage: "stage2", Step: 2, Steps: 10, Tokens: 500, Child: "r/stage2/000002",
			Last: &activities.StepMetrics{Reward: 0.4, ToolErrorShare: 0.125}},
		{Run: "r", Phase: workflows.PhaseRollout, Stage: "stage2", Done: done, Total: 8, Tokens: int64(100 * done)},
	}
}

func TestOneLineSaysStageStepRewardToolErrorsRateAndTimeLeft(t *testing.T) {
	var p Pace
	start := time.Unix(1000, 0)
	p.Add(Merge(training(0)), start)
	v := p.Add(Merge(training(4)), start.Add(20*time.Second))
	// 0.9*4/8 of a step in 20 s: 8 steps less that are left.
	if want := (8 - 0.45) / 0.45 * 20; math.Abs(v.Left-want) > 1e-6 {
		t.Errorf("%.3f s left, want %.3f", v.Left, want)
	}
	line := v.Line()
	for _, want := range []string{"stage2: step 3/10, rollout", "reward 0.40", "tool errors 12%", "20 tokens/s", "ETA stage 6m"} {
		if !strings.Contains(line, want) {
			t.Errorf("line %q lacks %q", line, want)
		}
	}
}

func TestTheRunsTimeLeftIsThatOfAllStepsToCome(t *testing.T) {
	r := recipe.Recipe{Stages: []recipe.Stage{{Name: "stage1", Steps: 6}, {Name: "stage2", Steps: 10}, {Name: "stage3", Steps: 20}}}
	evaluation := []workflows.Progress{
		{Run: "r", Phase: workflows.PhaseEvaluate, Stage: "stage2", Tokens: 2000},
		{Run: "r", Phase: workflows.PhaseRollout, Stage: "stage2", Done: 0, Total: 100},
	}
	var p Pace
	start := time.Unix(1000, 0)
	if v := p.Add(Merge(evaluation).Of(r), start); v.RunLeft != 0 {
		t.Errorf("%.0f s left of a run whose steps nobody has seen", v.RunLeft)
	}
	p.Add(Merge(training(0)).Of(r), start)
	v := p.Add(Merge(training(4)).Of(r), start.Add(18*time.Second))
	// 0.45 of a step in 18 s is 40 s a step: 7.55 steps of this stage, 20 of the next.
	if want := 40 * (7.55 + 20); math.Abs(v.RunLeft-want) > 1e-6 || v.Later != 20 {
		t.Errorf("%.1f s left of the run with %d steps later, want %.1f with 20", v.RunLeft, v.Later, want)
	}
	p.Add(Merge(evaluation).Of(r), start.Add(20*time.Second))
	evaluation[1].Done = 50
	v = p.Add(Merge(evaluation).Of(r), start.Add(30*time.Second))
	if want := 10 + 40*20.0; math.Abs(v.RunLeft-want) > 1e-6 {
		t.Errorf("%.1f s left of the run in an evaluation, want %.1f", v.RunLeft, want)
	}
	if line := v.Line(); !strings.Contains(line, "ETA eval 10s, run 14m") {
		t.Errorf("line %q does not say what its times are of", line)
	}
}

func TestAllFiguresFitATerminalOf80Columns(t *testing.T) {
	reward, errors := 0.4, 0.12
	v := View{Phase: workflows.PhaseRollout, Stage: "stage2", Step: 12, Steps: 100, Reward: &reward, ToolErrors: &errors, Rate: 1234, Left: 350, RunLeft: 1830}
	got := v.Fit(80 - barWidth - barFrame)
	for _, want := range []string{"stage2 13/100", "reward 0.40", "errors 12%", "1.2k t/s", "stage 6m", "run 31m"} {
		if !strings.Contains(got, want) {
			t.Errorf("line %q lacks %q", got, want)
		}
	}
	if wide := v.Fit(200); wide != v.Line() {
		t.Errorf("line %q where the whole one has room", wide)
	}
}

func TestTimesLeftAreAsExactAsEstimates(t *testing.T) {
	for seconds, want := range map[float64]string{0.2: "1s", 59: "59s", 59.5: "1m", 61: "2m", 3599: "1h00m", 7500: "2h05m"} {
		if got := span(seconds); got != want {
			t.Errorf("%v s are shown as %s, want %s", seconds, got, want)
		}
	}
}

func TestAnEvaluationIsNotShownAsTraining(t *testing.T) {
	v := Merge([]workflows.Progress{
		{Run: "r", Phase: workflows.PhaseEvaluate, Stage: "stage1"},
		{Run: "r", Phase: workflows.PhaseEvaluate, Stage: "stage1", Total: 50},
		{Run: "r", Phase: workflows.PhaseRollout, Stage: "stage1", Done: 20, Total: 100},
	})
	if got := v.Line(); got != "stage1: evaluate 20/100" {
		t.Errorf("line %q", got)
	}
	if v.Share() != 0.2 {
		t.Errorf("share %v, want 0.2", v.Share())
	}
}

func TestWorkDoneAgainDoesNotGiveNegativeRates(t *testing.T) {
	var p Pace
	start := time.Unix(1000, 0)
	p.Add(Merge(training(4)), start)
	v := p.Add(Merge(training(2)), start.Add(10*time.Second))
	if v.Rate != 0 || v.Left != 0 {
		t.Errorf("rate %v and %v s left after work was lost, want both unknown", v.Rate, v.Left)
	}
}

func TestLogsGetALineAtEveryChangeAndEveryTenSeconds(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	d := New(&out, Lines, func() time.Time { return now })
	for range 21 {
		d.Show(Merge(training(1)))
		now = now.Add(time.Second)
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines in 20 s of one phase, want 3:\n%s", n, out.String())
	}
	d.Show(View{Run: "r", Phase: workflows.PhaseReport})
	if !strings.HasSuffix(out.String(), "report\n") {
		t.Errorf("a new phase has no line:\n%s", out.String())
	}
}

func TestJSONModeWritesOneObjectALine(t *testing.T) {
	var out bytes.Buffer
	d := New(&out, JSON, func() time.Time { return time.Unix(0, 0) })
	d.Show(Merge(training(3)))
	d.Event("stack", "text for people", map[string]string{"ui": "here"})
	for line := range strings.Lines(out.String()) {
		var got struct {
			Time, Event string
			Data        map[string]any
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Event == "" || got.Data == nil {
			t.Errorf("line %q: %v", line, err)
		}
	}
	if strings.Contains(out.String(), "text for people") {
		t.Error("JSON output holds a text for people")
	}
}

func TestTheBarShowsTheLineAndGoesAway(t *testing.T) {
	var out bytes.Buffer
	d := New(&out, Bar, time.Now)
	d.Show(Merge(training(3)))
	if !strings.Contains(out.String(), "stage2: step 3/10") {
		t.Errorf("the bar does not say where the run is: %q", out.String())
	}
	d.Event("done", "finished", nil)
	if !strings.HasSuffix(out.String(), "finished\n") {
		t.Errorf("the event is not the last line: %q", out.String())
	}
}

func TestALongLineIsCutToTheTerminal(t *testing.T) {
	if got := cut("rollout · reward", 9); got != "rollout …" {
		t.Errorf("cut to %q", got)
	}
	if got := cut("short", 9); got != "short" {
		t.Errorf("a line that fits became %q", got)
	}
}
