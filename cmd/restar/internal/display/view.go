// Package display shows where a run is: as one bar on a terminal, as a line now and then elsewhere, or as JSON lines.
//
// It is a pure function of what workflows report and of the clock it is given; it asks nothing itself.
package display

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/restar-rl/restar/workers/recipe"
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
	Left       float64  `json:"seconds_left"`      // of the stage or evaluation, set by Pace; 0 means unknown
	RunLeft    float64  `json:"run_seconds_left"`  // of all steps still to come, set by Pace; 0 means unknown
	Later      int64    `json:"later_steps"`       // RL steps of the stages after this one
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

// Of completes a view with what only the recipe knows: the RL steps of the stages to come.
func (v View) Of(r recipe.Recipe) View {
	v.Later = int64(r.Steps())
	for i, s := range r.Stages {
		if s.Name == v.Stage {
			v.Later = int64(r.Steps() - r.FirstStep(i+1))
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
	return strings.Join(append(append([]string{v.title()}, v.figures("tokens/s", "tool errors", "ETA ", ", ")...), v.state()...), " · ")
}

// Fit is the view as one line of at most n characters: the whole line, or one that leaves out words first and then its end.
func (v View) Fit(n int) string {
	line := v.Line()
	if utf8.RuneCountInString(line) <= n {
		return line
	}
	title := strings.ReplaceAll(strings.SplitN(v.title(), ",", 2)[0], ": step", "")
	return cut(strings.Join(append(append([]string{title}, v.state()...), v.figures("t/s", "errors", "", " ")...), " "), n)
}

// figures are the measurements, named as there is room.
func (v View) figures(rate, errors, eta, and string) []string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if v.Reward != nil {
		add("reward %.2f", *v.Reward)
	}
	if v.ToolErrors != nil {
		add("%s %.0f%%", errors, 100**v.ToolErrors)
	}
	if v.Loss != nil {
		add("loss %.3f", *v.Loss)
	}
	if v.Rate > 0 {
		add("%s %s", count(v.Rate), rate)
	}
	var left []string
	if v.Left > 0 {
		left = append(left, v.piece()+" "+span(v.Left))
	}
	if v.RunLeft > 0 {
		left = append(left, "run "+span(v.RunLeft))
	}
	if len(left) > 0 {
		add("%s%s", eta, strings.Join(left, and))
	}
	return parts
}

// piece names what Left is of.
func (v View) piece() string {
	switch v.Phase {
	case workflows.PhaseEvaluate:
		return "eval"
	case workflows.PhaseFilter:
		return "filter"
	}
	return "stage"
}

// state is what a person should know beside the figures.
func (v View) state() []string {
	var parts []string
	if v.Paused {
		parts = append(parts, "paused")
	}
	if v.Stopping {
		parts = append(parts, "stopping")
	}
	if v.Waiting != "" {
		parts = append(parts, "waiting for "+v.Waiting)
	}
	if v.Trouble != "" {
		parts = append(parts, v.Trouble)
	}
	return parts
}

// span is an estimated time, as exact as an estimate is.
func span(seconds float64) string {
	switch m := int(math.Ceil(seconds / 60)); {
	case seconds <= 59:
		return fmt.Sprintf("%.0fs", math.Ceil(seconds))
	case m < 60:
		return fmt.Sprintf("%dm", m)
	default:
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	}
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
