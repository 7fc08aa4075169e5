package telemetry

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"
)

func sampleReport() ReportData {
	d := ReportData{
		Run: "quick", Recipe: "quickstart",
		Facts: []Fact{{"numerics", "cpu-avx2-fp32-v1"}},
		Evals: []Eval{
			{Name: "sft", Problems: 100, Samples: 8, Avg: 0.31, AvgLow: 0.25, AvgHigh: 0.37, Maj: 0.4, Pass: 0.7, ToolErrorShare: 0.2},
			{Name: "stage3", Problems: 100, Samples: 8, Avg: 0.62, AvgLow: 0.55, AvgHigh: 0.69, Maj: 0.7, Pass: 0.9, ToolErrorShare: 0.05, Unknown: 3},
		},
		SFT:      []LossPoint{{1, 3.5}, {2, 2.5}, {3, 1.25}},
		Curation: Curation{Read: 12, Kept: 10, Removed: []Removal{{"duplicate", 2}}},
		Trajectories: []Trajectory{{Title: "stage3, problem 4", Reward: 1, Stop: "answer", Gold: "42", Answer: "42", Tokens: 31, Segments: []Segment{
			{RolePrompt, "What is 6*7?"},
			{RoleModel, `Let me see. <tool_call>{"name":"python"}</tool_call>`},
			{RoleTool, "42"},
			{RoleModel, "<answer>42</answer>"},
		}}},
	}
	for i := range 6 {
		d.Steps = append(d.Steps, Step{Stage: []string{"stage1", "stage2"}[i/3], Step: int64(i + 1), Reward: 0.1 * float64(i), Entropy: 1, ResponseTokens: 60, GradNorm: 0.5})
	}
	return d
}

func render(t *testing.T, d ReportData) string {
	t.Helper()
	b, err := Render(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReportShowsWhatAModelWroteAsText(t *testing.T) {
	hostile := `</span><script>alert(1)</script><img src=x onerror=alert(2)>`
	d := sampleReport()
	d.Run, d.Recipe = hostile, hostile
	d.Facts = append(d.Facts, Fact{hostile, hostile})
	d.Evals[0].Name, d.Evals[1].Name = hostile, hostile
	d.Steps[3].Stage = hostile
	d.Curation.Removed[0].Reason = hostile
	d.Trajectories[0] = Trajectory{Title: hostile, Stop: hostile, Gold: hostile, Answer: hostile,
		Segments: []Segment{{RoleModel, hostile + "<tool_call>" + hostile}, {RoleTool, hostile}, {Role(`x" onclick="alert(3)`), hostile}}}
	out := render(t, d)
	for _, bad := range []string{"<script", "<img", `onclick="alert`} {
		if strings.Contains(out, bad) {
			t.Errorf("report contains %q unescaped", bad)
		}
	}
	if n := strings.Count(out, "&lt;script&gt;"); n < 12 {
		t.Errorf("hostile text is shown %d times, want at least 12: something was dropped", n)
	}
}

func TestReportAsksNothingOfTheNetwork(t *testing.T) {
	out := render(t, sampleReport())
	if m := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]|src\s*=|href\s*=|url\(|@import`).FindString(out); m != "" {
		t.Errorf("report contains %q, which may fetch something", m)
	}
	if !strings.Contains(out, "default-src 'none'") {
		t.Error("report does not forbid fetching")
	}
}

func TestRoundsWithoutCallsInCorrectTrajectoriesHaveNoErrorCurve(t *testing.T) {
	d := sampleReport()
	const title = "Tool errors in correct trajectories"
	if !strings.Contains(render(t, d), title) {
		t.Errorf("the report has no chart %q", title)
	}
	for i := range d.Steps {
		d.Steps[i].ToolErrorCorrect = math.NaN()
	}
	if strings.Contains(render(t, d), title) {
		t.Errorf("the report has a chart %q of nothing", title)
	}
}

func TestSameDataGivesTheSameReport(t *testing.T) {
	first := render(t, sampleReport())
	for range 5 {
		if render(t, sampleReport()) != first {
			t.Fatal("two renderings of the same data differ")
		}
	}
}

func TestReportShowsEveryPart(t *testing.T) {
	out := render(t, sampleReport())
	for _, want := range []string{"31.0%", "62.0%", "&#43;31.0", "25.0% to 37.0%", "duplicate", "Reward (mean of the round)", "Fine-tuning loss",
		"stage2", "cpu-avx2-fp32-v1", "expected 42", "(stage3: 3)", `class="seg call"`, `class="seg tool"`} {
		if !strings.Contains(out, want) {
			t.Errorf("report lacks %q", want)
		}
	}
	if n := strings.Count(out, "<svg"); n != 7 {
		t.Errorf("report has %d charts, want 7", n)
	}
	if strings.Contains(out, "#010203") || strings.Contains(out, "ZgotmplZ") {
		t.Error("a marker was left in the page")
	}
}

func TestReportOfARunThatHasNothingYet(t *testing.T) {
	out := render(t, ReportData{Run: "young"})
	for _, want := range []string{"No evaluation has finished yet", "No step has finished yet"} {
		if !strings.Contains(out, want) {
			t.Errorf("report lacks %q", want)
		}
	}
}

func TestChartLeavesOutWhatIsNotANumber(t *testing.T) {
	c, err := drawChart("x", []point{{1, math.NaN()}, {2, 0.25}, {3, math.Inf(1)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Last != "0.25" || strings.Contains(string(c.SVG), "NaN") {
		t.Errorf("chart ends at %s, want the one finite value 0.25 and no NaN", c.Last)
	}
	if c, err := drawChart("x", []point{{1, math.NaN()}}, nil); err != nil || c.SVG != "" {
		t.Errorf("a chart without a finite point is %q (%v), want none", c.SVG, err)
	}
}

func TestSplittingAtCallsKeepsTheText(t *testing.T) {
	for _, text := range []string{"", "plain", "<tool_call>a</tool_call>", "x<tool_call>a</tool_call>y<tool_call>b", "</tool_call>x"} {
		var joined strings.Builder
		for _, s := range splitCalls(Segment{RoleModel, text}) {
			joined.WriteString(s.Text)
		}
		if joined.String() != text {
			t.Errorf("parts of %q join to %q", text, joined.String())
		}
	}
}

func TestEvaluationTable(t *testing.T) {
	var b bytes.Buffer
	if err := WriteEvals(&b, sampleReport().Evals); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"avg@8", "31.0%", "55.0% to 69.0%", "sft to stage3: avg@8 +31.0 points on 100 held-out problems"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("table lacks %q:\n%s", want, b.String())
		}
	}
}
