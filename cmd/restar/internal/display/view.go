// Package display shows where a run is: as one bar on a terminal, as a line now and then elsewhere, or as JSON lines.
//
// It is a pure function of what workflows report and of the clock it is given; it asks nothing itself.
package display

import (
	"fmt"
	"strings"
	"time"

	"github.com/restar-rl/restar/workflows"
)

// View is one moment of a run.
type View struct {
	Run        string   `json:"run"`
	Phase      string   `json:"phase"`
	Stage      string   `json:"stage,omitempty"`
	Step       int64    `json:"step"` // optimizer steps of the stage
	Steps      int64    `json:"steps"`
	Done       int      `json:"done"` // parts of the step's rollout, or of the evaluation
	Total      int      `json:"total"`
	Reward     *float64 `json:"reward,omitempty"` // of the last step's round
	ToolErrors *float64 `json:"tool_error_share,omitempty"`
	Loss       *float64 `json:"loss,omitempty"` // fine-tuning
	Tokens     int64    `json:"tokens"`
	Rate       float64  `json:"tokens_per_second"` // set by Pace
	Left       float64  `json:"seconds_left"`      // of the stage, set by Pace; 0 means unknown
	Paused     bool     `json:"paused,omitempty"`
	Stopping   bool     `json:"stopping,omitempty"`
	Waiting    string   `json:"waiting,omitempty"` // whom the command waits for
	Trouble    string   `json:"trouble,omitempty"` // what is tried again and again
}

// Merge joins the reports of a run and of the workflows at work below it, outermost first.
func Merge(chain []workflows.Progress) View {
	var v View
	for i, p := range chain {
		v.Run, v.Tokens = p.Run, v.Tokens+p.Tokens
		// An evaluation's rollout is the evaluation, not a step of training.
		if p.Phase != "" && v.Phase != workflows.PhaseEvaluate {
			v.Phase = p.Phase
		}
		if p.Stage != "" {
			v.Stage = p.Stage
		}
		if p.Steps > 0 {
			v.Step, v.Steps = p.Step, p.Steps
		}
		if p.Total > 0 {
			v.Done, v.Total = p.Done, p.Total
		}
		v.Paused, v.Stopping = v.Paused || p.Paused, v.Stopping || p.Stopping
		if m := p.Last; m != nil && i > 0 {
			v.Reward, v.ToolErrors = &m.Reward, &m.ToolErrorShare
		}
		if p.Phase == workflows.PhaseFineTune && p.Loss > 0 {
			v.Loss = &p.Loss
		}
	}
	return v
}

// Share is how much of the stage or evaluation is done, 0 to 1: whole steps, and the part of the step that has been sampled.
func (v View) Share() float64 {
	part := 0.0
	if v.Total > 0 {
		part = float64(v.Done) / float64(v.Total)
	}
	switch {
	case v.Phase == workflows.PhaseDone || v.Phase == workflows.PhaseStopped:
		return 1
	case v.Phase == workflows.PhaseEvaluate || v.Phase == workflows.PhaseFilter || v.Steps == 0:
		return part
	case v.Phase == workflows.PhaseTrain || v.Phase == workflows.PhaseSelect:
		part = 1 // the round is sampled
	}
	if v.Phase == workflows.PhaseFineTune {
		part = 0
	}
	return min(1, (float64(v.Step)+0.9*part)/float64(v.Steps)) // 0.9: the update itself is the small rest of a step
}

// Line is the view as one line of text.
func (v View) Line() string {
	parts := []string{v.title()}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if v.Reward != nil {
		add("reward %.2f", *v.Reward)
	}
	if v.ToolErrors != nil {
		add("tool errors %.0f%%", 100**v.ToolErrors)
	}
	if v.Loss != nil {
		add("loss %.3f", *v.Loss)
	}
	if v.Rate > 0 {
		add("%s tokens/s", count(v.Rate))
	}
	if v.Left > 0 {
		add("%s left", time.Duration(v.Left*float64(time.Second)).Round(time.Second))
	}
	if v.Paused {
		add("paused")
	}
	if v.Stopping {
		add("stopping")
	}
	if v.Waiting != "" {
		add("waiting for %s", v.Waiting)
	}
	if v.Trouble != "" {
		add("%s", v.Trouble)
	}
	return strings.Join(parts, " · ")
}

func (v View) title() string {
	switch v.Phase {
	case workflows.PhaseEvaluate:
		return fmt.Sprintf("%s: evaluate %d/%d", v.Stage, v.Done, v.Total)
	case workflows.PhaseFilter:
		return fmt.Sprintf("%s: filter problems %d/%d", v.Stage, v.Done, v.Total)
	case workflows.PhaseFineTune:
		return fmt.Sprintf("%s: step %d/%d", v.Stage, v.Step, v.Steps)
	case workflows.PhaseRollout, workflows.PhaseSelect, workflows.PhaseTrain:
		return fmt.Sprintf("%s: step %d/%d, %s", v.Stage, min(v.Step+1, v.Steps), v.Steps, v.Phase)
	case "":
		return "starting"
	}
	return v.Phase
}

func count(x float64) string {
	if x >= 10000 {
		return fmt.Sprintf("%.0fk", x/1000)
	}
	if x >= 1000 {
		return fmt.Sprintf("%.1fk", x/1000)
	}
	return fmt.Sprintf("%.0f", x)
}
