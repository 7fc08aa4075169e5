// Package sandboxbench measures restar's sandbox service beside code-judge's design, and at its own limits.
//
// Costs are CPU time of whole process trees: every contestant runs in a control group of its own (or, without the rights for
// one, is added up from /proc), so that interpreters, namespaces, Redis and HTTP servers all count. Contestants take turns.
package sandboxbench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/workers/sandbox"
)

// Options say what to measure and where things are.
type Options struct {
	Figures   string // file that the figures are written to
	Restar    string // the restar binary, whose `sandbox serve` is measured
	Peers     string // folder of the peers' programs
	Prototype string // folder of a built prototype with a `serve` and code-judge's interface; "" leaves it out
	Tier      sandbox.Tier
	Sections  []string
	Rounds    int
	Burst     int // calls at once against the executor in process
	Real      int // and against the real sandbox
	JSON      bool
	Require   bool
}

// section is one part of the benchmark.
type section struct {
	name    string
	seconds float64 // expected
	run     func(*bench, context.Context) error
}

func sections() []section {
	return []section{
		{"peers", peersSeconds, (*bench).peers}, {"tail", 35, (*bench).tail}, {"isolation", 25, (*bench).isolation},
		{"burst", 40, (*bench).burst}, {"real", 60, (*bench).real}, {"verifier", 20, (*bench).verifier},
	}
}

// SectionNames lists what --only takes.
func SectionNames() string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

// bench is one run.
type bench struct {
	Options
	mix     map[string][]string
	figures match.Figures
	say     *match.Progress
}

//go:embed mix.json
var mixText []byte

// Run measures, writes the figures and prints a table.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	b := &bench{Options: o, figures: match.Figures{}}
	if err := json.Unmarshal(mixText, &b.mix); err != nil {
		return err
	}
	var chosen []section
	total := 0.0
	for _, s := range sections() {
		if len(o.Sections) == 0 || slices.Contains(o.Sections, s.name) {
			chosen = append(chosen, s)
			total += s.seconds
		}
	}
	if len(chosen) == 0 || o.Rounds < 1 || o.Burst < 1 || o.Real < 1 {
		return fmt.Errorf("%w: sections are %v, rounds, burst and real are %d, %d and %d, want some of %s and at least 1 each", match.ErrInput, o.Sections, o.Rounds, o.Burst, o.Real, SectionNames())
	}
	b.say = match.NewProgress(progress, total, time.Now)
	defer b.say.Close()
	done := 0.0
	for _, s := range chosen {
		b.say.Begin(s.name)
		if err := s.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		done += s.seconds
		b.say.Reach(done)
	}
	b.say.Close()
	if err := b.figures.Write(o.Figures); err != nil {
		return err
	}
	if err := b.report(out); err != nil {
		return err
	}
	if missed := b.missed(); o.Require && len(missed) > 0 {
		return errors.New(strings.Join(missed, "; "))
	}
	return nil
}
