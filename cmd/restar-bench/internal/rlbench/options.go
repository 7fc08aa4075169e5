// Package rlbench measures where the time of reinforcement learning goes: in a run of the product, in the agent loop while tools run,
// and in choosing and packing a batch of the paper's size.
package rlbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// Options say what to measure and where things are.
type Options struct {
	Figures      string // file that the figures are written to
	Restar       string // the restar binary, which trains
	Recipe       string // that the run derives from
	Dir          string // of the run, which is made anew
	Sections     []string
	Steps        int // of the run
	Rounds       int // of the agent loop, with and without a wait in turns
	Trajectories int // that a batch is chosen from
	Tokens       int // of each
	JSON         bool
	Require      bool
}

// section is one part of the benchmark.
type section struct {
	name    string
	seconds float64 // expected
	run     func(*bench, context.Context) error
}

func sections() []section {
	return []section{{"selection", 40, (*bench).selection}, {"shares", 180, (*bench).shares}, {"occupancy", 60, (*bench).occupancy}}
}

// SectionNames lists what --only takes.
func SectionNames() string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

// bench is one run of the benchmark.
type bench struct {
	Options
	figures match.Figures
	out     io.Writer // of the run's own progress
}

// model is the folder that the section shares leaves and the section occupancy samples from.
func (b *bench) model() string { return filepath.Join(b.Dir, "model") }

// Run measures, writes the figures and prints a table.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	if o.Steps < 1 || o.Rounds < 1 || o.Trajectories < groupSize || o.Trajectories%groupSize != 0 || o.Tokens < 64 {
		return fmt.Errorf("%w: %d steps, %d rounds, %d trajectories of %d tokens, want at least 1, 1, a multiple of %d, and 64", match.ErrInput, o.Steps, o.Rounds, o.Trajectories, o.Tokens, groupSize)
	}
	b := &bench{Options: o, figures: match.Figures{}, out: progress}
	var chosen []section
	total := 0.0
	for _, s := range sections() {
		if len(o.Sections) == 0 || slices.Contains(o.Sections, s.name) {
			chosen = append(chosen, s)
			total += s.seconds
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("%w: sections are %v, want some of %s", match.ErrInput, o.Sections, SectionNames())
	}
	say := match.NewProgress(progress, total, time.Now)
	defer say.Close()
	for _, s := range chosen {
		say.Begin(s.name)
		if err := s.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		say.Done(s.seconds)
	}
	say.Close()
	if err := b.figures.Write(o.Figures); err != nil {
		return err
	}
	if o.JSON {
		if err := json.NewEncoder(out).Encode(b.figures); err != nil {
			return err
		}
	} else if err := b.report(out); err != nil {
		return err
	}
	if missed := b.missed(); o.Require && len(missed) > 0 {
		return errors.New(strings.Join(missed, "; "))
	}
	return nil
}
