package match

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress tells how far a benchmark is: one bar on a terminal, a line for each piece of work elsewhere.
type Progress struct {
	out   io.Writer
	now   func() time.Time
	start time.Time
	bar   *progressbar.ProgressBar
	done  float64
	total float64
}

const barParts = 1000 // resolution of the bar

// NewProgress begins work that is expected to take about total seconds. now is the clock, time.Now outside tests.
func NewProgress(out io.Writer, total float64, now func() time.Time) *Progress {
	p := &Progress{out: out, total: total, now: now, start: now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(barParts, progressbar.OptionSetWriter(out), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetWidth(20), progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionUseANSICodes(true), progressbar.OptionClearOnFinish())
	}
	return p
}

// Begin names the piece of work that begins.
func (p *Progress) Begin(what string) {
	line := fmt.Sprintf("%s, %s", what, p.left())
	if p.bar == nil {
		fmt.Fprintf(p.out, "%s  %s\n", p.now().Format(time.TimeOnly), line)
		return
	}
	p.bar.Describe(line)
	_ = p.bar.Set(min(int(p.done/p.total*barParts), barParts-1)) // a full bar would end itself; Close does
}

// Done counts a piece of work that was planned to take some seconds.
func (p *Progress) Done(seconds float64) { p.done += seconds }

// Reach says that work of some seconds, as planned and counted from the start, is done.
func (p *Progress) Reach(seconds float64) { p.done = seconds }

// left estimates the time to come: as planned, stretched by how the plan has held so far.
func (p *Progress) left() string {
	rest := p.total - p.done
	if gone := p.now().Sub(p.start).Seconds(); p.done > 0 {
		rest *= max(0.5, min(3, gone/p.done))
	}
	return fmt.Sprintf("about %s left", time.Duration(max(1, rest)*float64(time.Second)).Round(time.Second))
}

// Say prints a line that stays.
func (p *Progress) Say(format string, args ...any) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.out, format+"\n", args...)
}

// Close takes the bar away.
func (p *Progress) Close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
