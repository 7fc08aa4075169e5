package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// Options say what to measure and where things are.
type Options struct {
	Figures  string // file for the figures
	Scripts  string // folder of the peers' programs
	Peers    string // folder of what .ci/peers/install.sh installed
	Sections []string
	Sizes    []string
	JSON     bool
	Require  bool
}

// section is one part of the benchmark; seconds is what it takes about.
type section struct {
	name    string
	seconds float64
	run     func(*runner) error
}

// sections in the order in which they run: later ones need figures of earlier ones.
var sections = []section{
	{"limits", 8, (*runner).limits},
	{"products", 12, (*runner).bigProducts},
	{"train", 330, (*runner).training},
	{"bound", 110, (*runner).bounds},
	{"decode", 60, (*runner).decoding},
	{"generate", 260, (*runner).generating},
}

// SectionNames lists the sections for people.
func SectionNames() string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

// runner is one run of the benchmark.
type runner struct {
	context.Context
	Options
	figures  match.Figures
	progress *match.Progress
	notes    []string          // what could not be had or is worth knowing
	peers    map[string]string // versions
	compared []comparison
	planned  float64 // seconds planned for the sections before
	section  section
	self     string
	python3  string // Debian's interpreter
	node     string // runs llama.cpp
}

// Run measures and reports. A peer that cannot be had is told of and left out.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	total := 0.0
	for _, s := range sections {
		if o.runs(s.name) {
			total += s.seconds
		}
	}
	r := &runner{Context: ctx, Options: o, figures: match.Figures{}, peers: map[string]string{}, self: self, python3: debianPython, node: "node",
		progress: match.NewProgress(progress, total, time.Now)}
	defer r.progress.Close()
	played := r.play()
	r.progress.Close()
	if err := errors.Join(played, r.figures.Write(o.Figures), r.report(out)); err != nil { // what was measured is told all the same
		return err
	}
	if missed := r.missed(); o.Require && len(missed) > 0 {
		return fmt.Errorf("below the bar: %s", strings.Join(missed, ", "))
	}
	return nil
}

// play runs the sections.
func (r *runner) play() error {
	r.machine()
	planned := 0.0
	for _, s := range sections {
		if !r.runs(s.name) {
			continue
		}
		r.planned, r.section = planned, s
		r.progress.Reach(planned)
		r.progress.Begin(s.name)
		if err := s.run(r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		planned += s.seconds
	}
	return nil
}

// begin tells that a section goes on with a model. Each size is taken to need three times as long as the one before.
func (r *runner) begin(what string, s Shape) {
	weight, before, total := 1.0, 0.0, 0.0
	for _, x := range r.chosen() {
		if x.Name == s.Name {
			before = total
		}
		total += weight
		weight *= 3
	}
	r.progress.Reach(r.planned + r.section.seconds*before/total)
	r.progress.Begin(what + " " + s.Name)
}

func (o Options) runs(name string) bool {
	return len(o.Sections) == 0 || slices.Contains(o.Sections, name)
}

func (o Options) check() error {
	for _, s := range o.Sections {
		if !slices.ContainsFunc(sections, func(x section) bool { return x.name == s }) {
			return fmt.Errorf("%w: no section %q; there are %s", match.ErrInput, s, SectionNames())
		}
	}
	for _, s := range o.Sizes {
		if !slices.ContainsFunc(shapes, func(x Shape) bool { return x.Name == s }) {
			return fmt.Errorf("%w: no model %q; there are %s", match.ErrInput, s, SizeNames())
		}
	}
	return nil
}

// Contestants' names.
const (
	restar      = "restar"
	torchDebian = "PyTorch (Debian)"
	torchNew    = "PyTorch (newest)"
	llamaCpp    = "llama.cpp"
	oneDNN      = "oneDNN"
	limits      = "limits"
)

// prepareWait is how long a contestant may take to start: PyTorch reads some gigabytes at its first import.
const prepareWait = 2 * time.Minute

// restar starts our side of a task.
func (r *runner) restar(task string, s Shape) (*match.Process, error) {
	job, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return match.Start(r, match.Spec{Name: strings.TrimSpace(restar + " " + s.Precision), Command: []string{r.self, "contestant", task, string(job)}}, prepareWait)
}

// debianPython is the interpreter that Debian's packages are of.
const debianPython = "/usr/bin/python3"

// python starts a script with the interpreter of a PyTorch.
func (r *runner) python(name, script string, s Shape) *match.Process {
	interpreter := r.python3
	if name == torchNew {
		interpreter = filepath.Join(r.Peers, "torch", "bin", "python")
	}
	job, err := json.Marshal(s)
	if err != nil {
		r.note(name, err)
		return nil
	}
	return r.peer(match.Spec{Name: name, Command: []string{interpreter, filepath.Join(r.Scripts, script), string(job), s.Precision}})
}

// peer starts a peer, or notes why there is none.
func (r *runner) peer(s match.Spec) *match.Process {
	p, err := match.Start(r, s, prepareWait)
	if err != nil {
		r.note(s.Name, err)
		return nil
	}
	r.peers[s.Name] = p.Version
	return p
}

// note keeps a line for the end of the report, once.
func (r *runner) note(name string, err error) {
	text := fmt.Sprintf("%s could not be measured: %v", name, err)
	if !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

// entries makes one entry for each number of threads of a process, none of no process.
func entries(p *match.Process, counts ...string) []*match.Entry {
	if p == nil {
		return nil
	}
	var all []*match.Entry
	for _, c := range counts {
		all = append(all, &match.Entry{Process: p, Request: c})
	}
	return all
}

// stop ends processes, absent ones too.
func stop(ps ...*match.Process) {
	for _, p := range ps {
		if p != nil {
			p.Stop()
		}
	}
}

// failed is the error of restar's own entries, which is a fault of the benchmark's subject.
func failed(entries ...*match.Entry) error {
	for _, e := range entries {
		if e.Failed != nil {
			return e.Failed
		}
	}
	return nil
}
