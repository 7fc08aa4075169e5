package training

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/display"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/machine"
	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workflows"
)

// finish brings a finished run's report and model to the command's folder and says what was done.
func finish(ctx context.Context, d *display.Display, s *session.Session, r recipe.Recipe, o Options, out workflows.RunResult, took time.Duration) error {
	report, _, err := s.Store.Get(ctx, out.Report.Key)
	if err != nil {
		return fmt.Errorf("report of run %s: %w", o.Run, err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fault.AsUser(err)
	}
	page, model := o.results(r)
	if err := os.WriteFile(page, report, 0o644); err != nil {
		return fault.AsUser(err)
	}
	if model != "" {
		if err := fetchModel(ctx, s.Store, o.Run, model); err != nil {
			return err
		}
	}
	if o.Figures != "" {
		f, err := figures(ctx, s.Store, o.Run, r, out, took)
		if err != nil {
			return fmt.Errorf("figures of run %s: %w", o.Run, err)
		}
		if err := writeJSON(o.Figures, f); err != nil {
			return err
		}
	}
	if o.Curves != "" {
		if err := writeCurves(ctx, s, r, o); err != nil {
			return fmt.Errorf("curves of run %s: %w", o.Run, err)
		}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "\n%s", activities.EvalTable(out.Evals))
	fmt.Fprintf(&text, "\nrun %s %s in %s: %s\n", o.Run, ending(out), took.Round(time.Second), did(r))
	fmt.Fprintf(&text, "  report  %s", page)
	if model != "" {
		fmt.Fprintf(&text, "\n  model   %s (a Hugging Face folder, weights %s)", model, out.Weights.Version)
	}
	d.Event("done", text.String(), struct {
		workflows.RunResult
		Run        string  `json:"run"`
		ReportFile string  `json:"report_file"`
		ModelDir   string  `json:"model_dir,omitempty"`
		Seconds    float64 `json:"seconds"`
	}{out, o.Run, page, model, took.Seconds()})
	return nil
}

// results are where a run's report and model go. The folder's report and model are those of the run that trained; an
// evaluation has a page of its own and no model.
func (o Options) results(r recipe.Recipe) (page, model string) {
	if r.SFT.Steps > 0 || len(r.Stages) > 0 {
		return ReportFile(o.Dir), filepath.Join(o.Dir, "model")
	}
	return filepath.Join(o.Dir, o.Run+".html"), ""
}

// outputs are all paths that the command writes at its end.
func (o Options) outputs(r recipe.Recipe) []machine.Output {
	const elsewhere = "choose another folder with --dir"
	page, model := o.results(r)
	out := []machine.Output{{Path: o.Dir, Folder: true, Fix: elsewhere}, {Path: page, Fix: elsewhere}}
	if model != "" {
		out = append(out, machine.Output{Path: model, Folder: true, Fix: elsewhere})
	}
	if o.Figures != "" {
		out = append(out, machine.Output{Path: o.Figures, Fix: "choose another file with --figures"})
	}
	if o.Curves != "" {
		out = append(out, machine.Output{Path: o.Curves, Fix: "choose another file with --curves"})
	}
	return out
}

// gained refuses a run that gained less than the options demand.
func gained(o Options, out workflows.RunResult) error {
	gain := Figures{}.scored(out).Gain
	if o.RequireGain > 0 && gain < o.RequireGain {
		return fmt.Errorf("run %s gained %.1f points of held-out pass@1, want at least %g", o.Run, gain, o.RequireGain)
	}
	return nil
}

func ending(out workflows.RunResult) string {
	if out.Stopped {
		return "was stopped"
	}
	return "is done"
}

// did tells a recipe's work in words.
func did(r recipe.Recipe) string {
	text := "curated the problems"
	if r.SFT.Steps > 0 {
		text += fmt.Sprintf(", fine-tuned for %d steps", r.SFT.Steps)
	}
	if n := len(r.Stages); n > 0 {
		text += fmt.Sprintf(", reinforced for up to %d steps in %d stages", r.Steps(), n)
	}
	return text + fmt.Sprintf(", evaluated with %d samples of up to %d problems", r.Eval.Samples, r.Eval.Problems)
}

// fetchModel writes the exported policy as a Hugging Face folder.
func fetchModel(ctx context.Context, s store.Store, run, dir string) error {
	entries, err := s.List(ctx, activities.ModelPrefix(run))
	if err != nil {
		return fmt.Errorf("model of run %s: %w", run, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.AsUser(err)
	}
	for _, e := range entries {
		body, _, err := s.Get(ctx, e.Key)
		if err != nil {
			return fmt.Errorf("model of run %s: %w", run, err)
		}
		if err := os.WriteFile(filepath.Join(dir, path.Base(e.Key)), body, 0o644); err != nil {
			return fault.AsUser(err)
		}
	}
	return nil
}
