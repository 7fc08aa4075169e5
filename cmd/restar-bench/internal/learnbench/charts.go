package learnbench

import (
	"cmp"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Size of a chart.
const (
	chartWidth  = 7 * vg.Inch
	chartHeight = 4 * vg.Inch
	chartDPI    = 120
	margin      = vg.Length(10) // points around the drawing
	legendWidth = vg.Length(110)
)

// palette is Okabe and Ito's, which colour-blind people tell apart.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{230, 159, 0, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{0, 0, 0, 255},
}

// line is one curve.
type line struct {
	legend string // "": its colour is explained by another
	colour int
	dashed bool
	xys    plotter.XYs
}

// charts draws everything into a folder.
func (b *bench) charts(dir string, results []result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range []struct {
		file, title, y string
		points         func(result) plotter.XYs
	}{
		{"pass1", "Held-out pass@1", "share of samples", overEvals(func(e eval) float64 { return e.Pass1 })},
		{"tool_errors", "Tool errors in correct rollouts", "share of calls", overSteps(errorRate)},
		{"tool_errors_held_out", "Tool errors in correct held-out trajectories", "share of calls", overEvals(func(e eval) float64 { return e.ToolErrorCorrect })},
		{"reward", "Reward of rollouts", "mean", overSteps(mean(func(s step) float64 { return s.Reward }))},
		{"response_tokens", "Sampled tokens a rollout", "mean", overSteps(mean(func(s step) float64 { return s.ResponseTokens }))},
		{"entropy", "Entropy of the policy", "nats a token", overSteps(mean(func(s step) float64 { return s.Entropy }))},
	} {
		var lines []line
		for _, r := range results {
			lines = append(lines, line{legend: b.legend(r, lines), colour: b.colour(r), xys: c.points(r)})
		}
		if err := drawLines(filepath.Join(dir, c.file+".png"), c.title, "optimizer step", c.y, lines); err != nil {
			return err
		}
	}
	return b.sampleCharts(dir, results)
}

// colour is that of a run's algorithm.
func (b *bench) colour(r result) int {
	var names []string
	for _, p := range b.table.Runs {
		if !slices.Contains(names, p.Algorithm) {
			names = append(names, p.Algorithm)
		}
	}
	return slices.Index(names, r.Algorithm) % len(palette)
}

// legend names the first line of a colour.
func (b *bench) legend(r result, before []line) string {
	for _, l := range before {
		if l.colour == b.colour(r) {
			return ""
		}
	}
	return r.Algorithm
}

func overEvals(of func(eval) float64) func(result) plotter.XYs {
	return func(r result) plotter.XYs {
		evals := slices.Clone(r.Evals) // the last may be of an earlier policy, the best one
		slices.SortStableFunc(evals, func(a, b eval) int { return cmp.Compare(a.Step, b.Step) })
		evals = slices.CompactFunc(evals, func(a, b eval) bool { return a.Step == b.Step })
		out := make(plotter.XYs, len(evals))
		for i, e := range evals {
			out[i] = plotter.XY{X: float64(e.Step), Y: of(e)}
		}
		return out
	}
}

// smooth is how many steps a point of a curve over steps pools: enough to see through the noise of one round.
const smooth = 3

func overSteps(of func([]step) float64) func(result) plotter.XYs {
	return func(r result) plotter.XYs {
		out := make(plotter.XYs, len(r.Steps))
		for i, s := range r.Steps {
			out[i] = plotter.XY{X: float64(s.Step), Y: of(r.Steps[max(0, i+1-smooth) : i+1])}
		}
		return out
	}
}

func mean(of func(step) float64) func([]step) float64 {
	return func(steps []step) float64 {
		sum := 0.0
		for _, s := range steps {
			sum += of(s)
		}
		return sum / float64(len(steps))
	}
}

// sampleCharts draw pass@k and maj@k before and after learning, one chart an algorithm, the mean of its seeds.
func (b *bench) sampleCharts(dir string, results []result) error {
	byAlgorithm := map[string][]result{}
	for _, r := range results {
		byAlgorithm[r.Algorithm] = append(byAlgorithm[r.Algorithm], r)
	}
	for name, runs := range byAlgorithm {
		pass, maj := func(e eval) []float64 { return e.PassAt }, func(e eval) []float64 { return e.MajAt }
		lines := []line{
			{legend: "pass@k", colour: 0, xys: overSamples(runs, result.last, pass)},
			{legend: "pass@k before", colour: 0, dashed: true, xys: overSamples(runs, result.first, pass)},
			{legend: "maj@k", colour: 1, xys: overSamples(runs, result.last, maj)},
			{legend: "maj@k before", colour: 1, dashed: true, xys: overSamples(runs, result.first, maj)},
		}
		title := fmt.Sprintf("%s: held-out problems solved with k samples (%d seeds)", name, len(runs))
		if err := drawLines(filepath.Join(dir, "samples-"+name+".png"), title, "k", "share of problems", lines); err != nil {
			return err
		}
	}
	return nil
}

func overSamples(runs []result, at func(result) eval, of func(eval) []float64) plotter.XYs {
	var out plotter.XYs
	for k := range of(at(runs[0])) {
		sum, n := 0.0, 0.0
		for _, r := range runs {
			if scores := of(at(r)); k < len(scores) {
				sum, n = sum+scores[k], n+1
			}
		}
		out = append(out, plotter.XY{X: float64(k + 1), Y: sum / n})
	}
	return out
}

// drawLines writes one chart.
func drawLines(path, title, x, y string, lines []line) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Add(plotter.NewGrid())
	p.Y.Min = 0
	legend := plot.NewLegend() // beside the curves, not over them
	legend.Top, legend.Left, legend.Padding = true, true, vg.Points(3)
	for _, l := range lines {
		drawn, err := plotter.NewLine(l.xys)
		if err != nil {
			return fmt.Errorf("chart %s: %w", path, err)
		}
		drawn.Color, drawn.Width = palette[l.colour], vg.Points(1.6)
		if l.dashed {
			drawn.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(drawn)
		if l.legend != "" {
			legend.Add(l.legend, drawn)
		}
	}
	c := vgimg.NewWith(vgimg.UseWH(chartWidth, chartHeight), vgimg.UseDPI(chartDPI), vgimg.UseBackgroundColor(color.White))
	whole := draw.Crop(draw.New(c), margin, -margin, margin, -margin)
	p.Draw(draw.Crop(whole, 0, -legendWidth, 0, 0))
	legend.Draw(draw.Crop(whole, chartWidth-2*margin-legendWidth+margin, 0, 0, -margin))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("chart %s: %w", path, err)
	}
	return f.Close()
}
