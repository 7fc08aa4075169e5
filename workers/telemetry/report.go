package telemetry

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
)

//go:embed report.html
var reportPage string

// page is what the template sees.
type page struct {
	ReportData
	Charts []Chart
	Tiles  []Fact // the few figures to see first
}

// Render makes a run's report: one HTML page that asks nothing of any other host. The same data gives the same bytes, and
// whatever a model or a dataset wrote is shown as text.
func Render(d ReportData) ([]byte, error) {
	charts, err := charts(d)
	if err != nil {
		return nil, fmt.Errorf("report of %s: %w", d.Run, err)
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"pct": pct, "short": short, "split": splitCalls, "good": func(r float64) bool { return r > 0 },
	}).Parse(reportPage)
	if err != nil {
		return nil, fmt.Errorf("report template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page{ReportData: d, Charts: charts, Tiles: tiles(d.Evals)}); err != nil {
		return nil, fmt.Errorf("report of %s: %w", d.Run, err)
	}
	return b.Bytes(), nil
}

// charts draws every curve that has data.
func charts(d ReportData) ([]Chart, error) {
	marks := stageStarts(d.Steps)
	curves := []struct {
		title string
		value func(Step) float64
	}{
		{"Reward (mean of the round)", func(s Step) float64 { return s.Reward }},
		{"Tool errors (share of calls)", func(s Step) float64 { return s.ToolErrorShare }},
		{"Tool errors in correct trajectories", func(s Step) float64 { return s.ToolErrorCorrect }},
		{"Entropy (nats a token)", func(s Step) float64 { return s.Entropy }},
		{"Response length (tokens)", func(s Step) float64 { return s.ResponseTokens }},
		{"Gradient norm", func(s Step) float64 { return s.GradNorm }},
	}
	var out []Chart
	add := func(title string, pts []point, marks []mark) error {
		c, err := drawChart(title, pts, marks)
		if err == nil && c.SVG != "" {
			out = append(out, c)
		}
		return err
	}
	for _, c := range curves {
		pts := make([]point, len(d.Steps))
		for i, s := range d.Steps {
			pts[i] = point{float64(s.Step), c.value(s)}
		}
		if err := add(c.title, pts, marks); err != nil {
			return nil, err
		}
	}
	for _, s := range d.Iterations {
		pts := make([]point, len(s.Scores))
		for i, y := range s.Scores {
			pts[i] = point{float64(i), y}
		}
		title := fmt.Sprintf("%s: %s by iteration, 0 is its first policy", s.Stage, s.Score)
		if err := add(title, pts, []mark{{float64(s.Best), "best"}}); err != nil {
			return nil, err
		}
	}
	loss := make([]point, len(d.SFT))
	for i, p := range d.SFT {
		loss[i] = point{float64(p.Step), p.Loss}
	}
	return out, add("Fine-tuning loss (nats a token)", loss, nil)
}

// stageStarts marks the first step of each stage.
func stageStarts(steps []Step) []mark {
	var out []mark
	for i, s := range steps {
		if i == 0 || s.Stage != steps[i-1].Stage {
			out = append(out, mark{float64(s.Step), s.Stage})
		}
	}
	return out
}

// tiles compares the first and the last evaluation.
func tiles(evals []Eval) []Fact {
	if len(evals) == 0 {
		return nil
	}
	first, last := evals[0], evals[len(evals)-1]
	out := []Fact{{fmt.Sprintf("avg@%d, %s", first.Samples, first.Name), pct(first.Avg)}}
	if len(evals) > 1 {
		out = append(out,
			Fact{fmt.Sprintf("avg@%d, %s", last.Samples, last.Name), pct(last.Avg)},
			Fact{"gain, points", fmt.Sprintf("%+.1f", 100*(last.Avg-first.Avg))},
			Fact{"tool errors, share of calls", pct(first.ToolErrorShare) + " → " + pct(last.ToolErrorShare)})
	}
	return append(out, Fact{"held-out problems", fmt.Sprint(last.Problems)})
}

func pct(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// splitCalls cuts a model segment at its tool calls, so that the page can show them apart. The text is unchanged: the
// parts joined are the segment.
func splitCalls(s Segment) []Segment {
	const open, end = "<tool_call>", "</tool_call>"
	if s.Role != RoleModel {
		return []Segment{s}
	}
	var out []Segment
	rest := s.Text
	for rest != "" {
		i := strings.Index(rest, open)
		if i < 0 {
			break
		}
		j := len(rest)
		if k := strings.Index(rest[i:], end); k >= 0 {
			j = i + k + len(end)
		}
		if i > 0 {
			out = append(out, Segment{RoleModel, rest[:i]})
		}
		out = append(out, Segment{RoleCall, rest[i:j]})
		rest = rest[j:]
	}
	if rest != "" {
		out = append(out, Segment{RoleModel, rest})
	}
	return out
}
