package display

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/activities"
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
	for _, want := range []string{"stage2: step 3/10, rollout", "reward 0.40", "tool errors 12%", "20 tokens/s", "5m36s left"} {
		if !strings.Contains(line, want) {
			t.Errorf("line %q lacks %q", line, want)
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
