package telemetry

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of one chart, in points of its own coordinates; the page scales it to the column.
const (
	chartWidth  = 380
	chartHeight = 200
)

// The drawing library knows fixed colours only and leaves black out of its output, so charts are drawn in these marker
// colours and the page's own variables put in their place: one drawing serves the light and the dark page.
var (
	inkMark    = color.RGBA{1, 2, 3, 255}
	gridMark   = color.RGBA{4, 5, 6, 255}
	seriesMark = color.RGBA{7, 8, 9, 255}
	themed     = strings.NewReplacer("#010203", "var(--muted)", "#040506", "var(--line)", "#070809", "var(--series)")
)

// Chart is one curve over optimizer steps, ready to be put into the page.
type Chart struct {
	Title string
	Last  string // the newest value, for readers of the text alone
	SVG   template.HTML
}

// point is one value at one step.
type point struct{ x, y float64 }

// mark is a step at which something began.
type mark struct {
	x     float64
	label string
}

// drawChart draws the finite points as one line. Marks are dashed verticals. Zero points give no chart.
func drawChart(title string, pts []point, marks []mark) (Chart, error) {
	xys := finitePoints(pts)
	if len(xys) == 0 {
		return Chart{}, nil
	}
	p := newPlot(xys)
	p.Add(stageMarks{marks}, gridLines{})
	line, dots, err := plotter.NewLinePoints(xys)
	if err != nil {
		return Chart{}, fmt.Errorf("chart %q: %w", title, err)
	}
	line.Color, line.Width = seriesMark, vg.Points(1.6)
	dots.Color, dots.Radius, dots.Shape = seriesMark, vg.Points(1.8), draw.CircleGlyph{}
	p.Add(line, dots)
	svg, err := renderSVG(p, title)
	if err != nil {
		return Chart{}, fmt.Errorf("chart %q: %w", title, err)
	}
	return Chart{Title: title, Last: short(xys[len(xys)-1].Y), SVG: svg}, nil
}

func finitePoints(pts []point) plotter.XYs {
	var out plotter.XYs
	for _, p := range pts {
		if !math.IsNaN(p.y) && !math.IsInf(p.y, 0) {
			out = append(out, plotter.XY{X: p.x, Y: p.y})
		}
	}
	return out
}

// newPlot is an empty plot whose axes hold the points, with the value axis starting at 0 where no value is below it.
func newPlot(xys plotter.XYs) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	xmin, xmax, ymin, ymax := plotter.XYRange(xys)
	if xmin == xmax {
		xmin, xmax = xmin-1, xmax+1
	}
	if ymin = min(ymin, 0); ymin == ymax {
		ymax = ymin + 1
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xmin, xmax, ymin, ymax+0.15*(ymax-ymin) // room for the stages' names
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Padding = 0
		a.LineStyle.Color, a.Tick.LineStyle.Color = gridMark, gridMark
		a.Tick.Label.Color = inkMark
		a.Tick.Label.Font = labelFont()
		a.Tick.Length = vg.Points(3)
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(wholeTicks), plot.TickerFunc(niceTicks)
	p.Y.LineStyle.Width = 0
	return p
}

func labelFont() font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(11)}
}

func renderSVG(p *plot.Plot, title string) (template.HTML, error) {
	c := vgsvg.NewWith(vgsvg.UseWH(chartWidth, chartHeight))
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	return inlineSVG(b.String(), title)
}

// inlineSVG drops the document's prologue and namespace (HTML knows svg), and names the drawing for screen readers.
func inlineSVG(doc, title string) (template.HTML, error) {
	_, rest, ok := strings.Cut(doc, "<svg ")
	_, body, ok2 := strings.Cut(rest, ">")
	if !ok || !ok2 {
		return "", fmt.Errorf("drawing has no svg element")
	}
	head := fmt.Sprintf(`<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		chartWidth, chartHeight, template.HTMLEscapeString(title))
	//nolint:gosec // the body comes from the drawing library, which escapes the texts it is given
	return template.HTML(head + themed.Replace(body)), nil
}

// stageMarks draws where each stage begins.
type stageMarks struct{ marks []mark }

func (s stageMarks) Plot(c draw.Canvas, p *plot.Plot) {
	toX, _ := p.Transforms(&c)
	dashed := draw.LineStyle{Color: inkMark, Width: vg.Points(0.6), Dashes: []vg.Length{vg.Points(2), vg.Points(3)}}
	style := text.Style{Color: inkMark, Font: labelFont(), YAlign: text.YTop, Handler: plot.DefaultTextHandler}
	for _, m := range s.marks {
		x := toX(m.x)
		if !c.ContainsX(x) {
			continue
		}
		c.StrokeLine2(dashed, x, c.Min.Y, x, c.Max.Y)
		c.FillText(style, vg.Point{X: x + vg.Points(3), Y: c.Max.Y}, m.label)
	}
}

// gridLines draws a hairline at each labelled value.
type gridLines struct{}

func (gridLines) Plot(c draw.Canvas, p *plot.Plot) {
	_, toY := p.Transforms(&c)
	hair := draw.LineStyle{Color: gridMark, Width: vg.Points(0.6)}
	for _, t := range niceTicks(p.Y.Min, p.Y.Max) {
		c.StrokeLine2(hair, c.Min.X, toY(t.Value), c.Max.X, toY(t.Value))
	}
}

func niceTicks(lo, hi float64) []plot.Tick { return ticks(lo, hi, tickStep((hi-lo)/4)) }

// wholeTicks labels whole steps only.
func wholeTicks(lo, hi float64) []plot.Tick { return ticks(lo, hi, max(1, tickStep((hi-lo)/6))) }

func ticks(lo, hi, step float64) []plot.Tick {
	var out []plot.Tick
	for i := math.Ceil(lo / step); i*step <= hi+step*1e-9; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: short(i * step)})
	}
	return out
}

// tickStep is the smallest of 1, 2 and 5 times a power of ten that is not below raw.
func tickStep(raw float64) float64 {
	pow := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*pow >= raw*(1-1e-9) {
			return m * pow
		}
	}
	return 10 * pow
}

// short prints a value with at most four significant digits.
func short(v float64) string { return strconv.FormatFloat(roundTo(v, 4), 'f', -1, 64) }

func roundTo(v float64, digits int) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return r
}
