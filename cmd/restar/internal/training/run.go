package training

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/display"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/inputs"
	"github.com/restar-rl/restar/cmd/restar/internal/machine"
	"github.com/restar-rl/restar/cmd/restar/internal/numerics"
	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workflows"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// Options are those of a command that trains or evaluates.
type Options struct {
	session.Options
	Run         string // name; by default the recipe's
	JSON        bool
	Figures     string  // file for the run's figures, if any
	Curves      string  // file for what the run learned over its steps, if any
	RequireGain float64 // points of pass@1 that the run must gain to be a success; 0 demands nothing
}

// Register adds the flags.
func (o *Options) Register(fs *pflag.FlagSet) {
	o.Options.Register(fs)
	fs.StringVar(&o.Run, "run", "", "name of the run (default: the recipe's name)")
	fs.BoolVar(&o.JSON, "json", false, "print one JSON object a line")
	fs.StringVar(&o.Figures, "figures", "", "file to write the run's figures to, as JSON")
}

// RunRecipe trains by a recipe file and returns when the run has ended.
func RunRecipe(ctx context.Context, out io.Writer, path string, o Options) error {
	r, err := inputs.ReadRecipe(ctx, path)
	if err != nil {
		return err
	}
	if o.Run == "" {
		o.Run = r.Name
	}
	return run(ctx, out, r, o)
}

// run checks everything that can be checked, then opens the stack, starts the run or attaches to it, and follows it.
func run(ctx context.Context, out io.Writer, r recipe.Recipe, o Options) error {
	if !recipe.ValidName(o.Run) {
		return fault.Userf("run name %q, want lower-case letters, digits and hyphens, at most 40; correct --run", o.Run)
	}
	var err error
	if r.NumericsID, err = numerics.ID(model.Precision(r.Precision)); err != nil {
		return err
	}
	if err := inputs.Check(ctx, r); err != nil {
		return err
	}
	if err := machine.Writable(o.outputs(r)...); err != nil {
		return err
	}
	plan, err := inputs.Prepare(ctx, r)
	if err != nil {
		return err
	}
	if o.Local() {
		if err := machine.Ready(ctx, o.Dir, r.Sandbox); err != nil {
			return err
		}
	}
	d := display.New(out, mode(out, o.JSON), time.Now)
	s, err := session.Open(ctx, o.Options, func(text string) { d.Event("waiting", text, text) })
	if err != nil {
		return err
	}
	err = follow(ctx, d, s, plan, o)
	if errors.Is(err, fault.ErrInterrupted) {
		d.Event("interrupted", fmt.Sprintf("leaving run %s; it goes on from where it was when the same command is given again", o.Run), o.Run)
	}
	return errors.Join(err, s.Close())
}

// follow attends the run to its end. Where the stack's end is what ended it, that is the error.
func follow(ctx context.Context, d *display.Display, s *session.Session, plan inputs.Plan, o Options) error {
	ctx, cancel := s.Guard(ctx)
	defer cancel()
	err := attend(ctx, d, s, plan, o)
	if err != nil && ctx.Err() != nil {
		return session.Ended(ctx)
	}
	return err
}

func attend(ctx context.Context, d *display.Display, s *session.Session, plan inputs.Plan, o Options) error {
	w, found, err := Start(ctx, s.Client, s.Store, o.Run, plan)
	if err != nil {
		return err
	}
	greet(d, s, o.Run, found)
	result, err := Follow(ctx, s.Client, w, plan.Recipe, d)
	if err != nil {
		return err
	}
	took, err := duration(ctx, s.Client, o.Run)
	if err != nil {
		return err
	}
	if err := finish(ctx, d, s, plan.Recipe, o, result, took); err != nil {
		return err
	}
	return gained(o, result)
}

func greet(d *display.Display, s *session.Session, run string, found bool) {
	verb := "started"
	if found {
		verb = "found, going on"
	}
	text := fmt.Sprintf("run %s: %s", run, verb)
	data := map[string]string{"run": run, "state": verb, "workflow": workflows.RunID(run)}
	if s.UI != "" {
		link := fmt.Sprintf("%s/namespaces/%s/workflows/%s", s.UI, s.Namespace, workflows.RunID(run))
		text = fmt.Sprintf("Temporal UI: %s\n%s", link, text)
		data["ui"] = link
	}
	d.Event("run", text, data)
}

func mode(out io.Writer, asJSON bool) display.Mode {
	if asJSON {
		return display.JSON
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return display.Bar
	}
	return display.Lines
}

// ReportFile is where a run's report is written in the folder of the command.
func ReportFile(dir string) string { return filepath.Join(dir, "report.html") }
