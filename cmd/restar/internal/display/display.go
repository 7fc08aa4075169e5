package display

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Mode is how to show a run.
type Mode int

// Modes of display.
const (
	Lines Mode = iota // a line every ten seconds and when another piece of work begins
	Bar               // one bar, for terminals
	JSON              // one JSON object a line
)

// lineEvery is how often the same piece of work gets a new line: a log of a week stays readable.
const lineEvery = 10 * time.Second

const (
	barParts = 1000 // resolution of the bar
	barWidth = 6    // columns of the bar: what it leaves of 80 is enough for the line
	barFrame = 12   // columns of percentage and frame around it
	columns  = 100  // of a terminal that does not tell
)

// Display shows views and the events between them. It is for one goroutine.
type Display struct {
	out  io.Writer
	mode Mode
	now  func() time.Time
	pace Pace
	bar  *progressbar.ProgressBar
	last string    // what the newest line is about
	at   time.Time // when it was written
}

// New makes a display. now is the clock, time.Now outside tests.
func New(out io.Writer, mode Mode, now func() time.Time) *Display {
	return &Display{out: out, mode: mode, now: now}
}

// Show shows where the run is now.
func (d *Display) Show(v View) {
	now := d.now()
	v = d.pace.Add(v, now)
	if d.mode == Bar {
		d.showBar(v)
		return
	}
	if key := v.Stage + "/" + kind(v) + "/" + v.Waiting + v.Trouble; key != d.last || now.Sub(d.at) >= lineEvery {
		d.last, d.at = key, now
		if d.mode == JSON {
			d.encode("progress", v)
			return
		}
		fmt.Fprintf(d.out, "%s  %s\n", now.Format(time.TimeOnly), v.Line())
	}
}

func (d *Display) showBar(v View) {
	if d.bar == nil {
		d.bar = progressbar.NewOptions(barParts, progressbar.OptionSetWriter(d.out), progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetWidth(barWidth), progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionUseANSICodes(true), progressbar.OptionClearOnFinish())
	}
	d.bar.Describe(v.Fit(d.columns() - barWidth - barFrame))
	_ = d.bar.Set(min(int(v.Share()*barParts), barParts-1)) // a full bar would end itself; Close does
}

// columns is the width of the terminal: a line that wraps could not be drawn over.
func (d *Display) columns() int {
	if f, ok := d.out.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return columns
}

// cut shortens a text to n characters.
func cut(text string, n int) string {
	r := []rune(text)
	if len(r) <= n || n < 1 {
		return text
	}
	return string(r[:n-1]) + "…"
}

// Event tells something that has happened, once. data is its JSON form.
func (d *Display) Event(kind, text string, data any) {
	if d.mode == JSON {
		d.encode(kind, data)
		return
	}
	d.Close()
	if text != "" {
		fmt.Fprintln(d.out, text)
	}
}

// Close takes the bar away.
func (d *Display) Close() {
	if d.bar != nil {
		_ = d.bar.Clear()
		d.bar = nil
	}
}

func (d *Display) encode(kind string, data any) {
	line := struct {
		Time  string `json:"time"`
		Event string `json:"event"`
		Data  any    `json:"data"`
	}{d.now().UTC().Format(time.RFC3339), kind, data}
	body, err := json.Marshal(line)
	if err != nil {
		body, _ = json.Marshal(map[string]string{"event": kind, "error": err.Error()})
	}
	fmt.Fprintf(d.out, "%s\n", body)
}
