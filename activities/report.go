package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/telemetry"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// ReportKey holds a run's HTML report.
func ReportKey(run string) string { return store.ArtifactKey(run, "report", "report.html") }

// WriteReport gathers what the run left in the store into one self-contained page.
func (s *Scoring) WriteReport(ctx context.Context, in ReportInput) (ReportResult, error) {
	ctx, _, stop := beat(ctx)
	defer stop()
	page, err := s.Report(ctx, in)
	if err != nil {
		return ReportResult{}, err
	}
	key := ReportKey(in.Run)
	_, err = s.Store.Put(ctx, key, page, store.PutOptions{})
	return ReportResult{Report: Ref{Key: key, Digest: digest(page)}}, err
}

// Report renders the page from what is in the store so far.
func (s *Scoring) Report(ctx context.Context, in ReportInput) ([]byte, error) {
	rec, err := readJSON[Recipe](ctx, s.Store, store.RecipeKey(in.Run))
	if err != nil {
		return nil, err
	}
	d := telemetry.ReportData{Run: in.Run, Recipe: rec.Name, Facts: facts(rec, in)}
	for _, gather := range []func(context.Context, Recipe, string, *telemetry.ReportData) error{
		s.addModel, s.addCuration, s.addFineTuning, s.addSteps, s.addIterations, s.addEvals, s.addTrajectories,
	} {
		if err := gather(ctx, rec, in.Run, &d); err != nil {
			return nil, err
		}
	}
	return telemetry.Render(d)
}

func facts(rec Recipe, in ReportInput) []telemetry.Fact {
	out := []telemetry.Fact{
		{Name: "seed", Value: fmt.Sprint(rec.Seed)},
		{Name: "numerics", Value: rec.NumericsID},
		{Name: "algorithm", Value: fmt.Sprintf("%s, clip %g/%g, learning rate %g", rec.RL.Algorithm, rec.RL.ClipLow, rec.RL.ClipHigh, rec.RL.LR)},
	}
	for _, st := range rec.Stages {
		if st.Star != nil {
			out = append(out, telemetry.Fact{Name: st.Name, Value: starFact(st)})
			continue
		}
		out = append(out, telemetry.Fact{Name: st.Name, Value: fmt.Sprintf("%d steps, %d prompts × %d samples → %d, %d tokens, %d turns",
			st.Steps, st.Prompts, st.Samples, st.Keep, st.ResponseTokens, st.Turns)})
	}
	if in.Stopped {
		out = append(out, telemetry.Fact{Name: "ended", Value: "stopped by its user"})
	}
	return out
}

// addModel tells how large the model is, and what the longest trajectory costs to train on.
func (s *Scoring) addModel(ctx context.Context, rec Recipe, run string, d *telemetry.ReportData) error {
	body, _, err := s.Store.Get(ctx, modelKey(run, model.ConfigFile))
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	cfg, err := model.ParseConfig(body)
	if err != nil {
		return fmt.Errorf("%s: %w", modelKey(run, model.ConfigFile), err)
	}
	longest := rec.LongestTrajectory()
	d.Facts = append(d.Facts, telemetry.Fact{Name: "model", Value: fmt.Sprintf("%.4g million parameters; %.4g GFLOP to train on a trajectory of %d tokens",
		float64(cfg.Elements())/1e6, cfg.TrainFLOPs(longest)/1e9, longest)})
	return nil
}

func (s *Scoring) addCuration(ctx context.Context, _ Recipe, run string, d *telemetry.ReportData) error {
	c, err := readJSON[CurateResult](ctx, s.Store, curationKey(run))
	if isNotFound(err) {
		return nil
	}
	reasons := make([]string, 0, len(c.Removed))
	for reason := range c.Removed {
		reasons = append(reasons, reason)
	}
	sort.Strings(reasons)
	d.Curation.Kept = c.Train.Problems
	d.Curation.Read = c.Train.Problems
	for _, r := range reasons {
		d.Curation.Removed = append(d.Curation.Removed, telemetry.Removal{Reason: r, Count: c.Removed[r]})
		d.Curation.Read += c.Removed[r]
	}
	return err
}

func (s *Scoring) addFineTuning(ctx context.Context, _ Recipe, run string, d *telemetry.ReportData) error {
	all, err := metricsOf[FineTuneMetrics](ctx, s.Store, run, StageSFT)
	for _, m := range all {
		for i, loss := range m.Loss {
			d.SFT = append(d.SFT, telemetry.LossPoint{Step: int64(m.From + i + 1), Loss: loss})
		}
	}
	return err
}

func (s *Scoring) addSteps(ctx context.Context, rec Recipe, run string, d *telemetry.ReportData) error {
	for _, st := range rec.Stages {
		var all []StepMetrics
		for _, kept := range st.Kept() {
			some, err := metricsOf[StepMetrics](ctx, s.Store, run, kept)
			if err != nil {
				return err
			}
			all = append(all, some...)
		}
		slices.SortFunc(all, func(a, b StepMetrics) int { return cmp.Compare(a.Step, b.Step) }) // a round may hold several
		d.Facts = append(d.Facts, skips(st.Name, all)...)
		if st.Star == nil { // whose steps of an iteration all have one round's figures
			d.Facts = append(d.Facts, alarms(st.Name, all)...)
		}
		for _, m := range all {
			d.Steps = append(d.Steps, telemetry.Step{
				Stage: st.Name, Step: m.Step, Reward: m.Reward, ToolErrorShare: m.ToolErrorShare, Entropy: m.Entropy,
				ResponseTokens: m.ResponseTokens, GradNorm: m.GradNorm, ToolErrorCorrect: float64(m.CorrectErrors) / float64(m.CorrectCalls),
			})
		}
	}
	return nil
}

// metricsOf reads every metrics object of a stage in order.
func metricsOf[T any](ctx context.Context, s store.Store, run, stage string) ([]T, error) {
	entries, err := s.List(ctx, store.StagePrefix(run, stage)+"metrics/")
	if err != nil {
		return nil, err
	}
	out := make([]T, len(entries))
	for i, e := range entries {
		if out[i], err = readJSON[T](ctx, s, e.Key); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addEvals adds the evaluations at stage ends, before reinforcement learning first.
func (s *Scoring) addEvals(ctx context.Context, rec Recipe, run string, d *telemetry.ReportData) error {
	for _, at := range evalPlaces(rec) {
		e, err := readJSON[EvalResult](ctx, s.Store, EvalKey(run, at.stage, at.name))
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		d.Evals = append(d.Evals, e.shown())
	}
	return nil
}

type evalPlace struct{ stage, name string }

func evalPlaces(rec Recipe) []evalPlace {
	out := []evalPlace{{StageSFT, FirstEval(rec)}}
	for _, st := range rec.Stages {
		out = append(out, evalPlace{st.Name, st.Name})
	}
	return out
}

// FirstEval names the evaluation before reinforcement learning.
func FirstEval(rec Recipe) string {
	if rec.SFT.Steps == 0 {
		return "start"
	}
	return StageSFT
}

func (r EvalResult) shown() telemetry.Eval {
	return telemetry.Eval{
		Name: r.Name, Problems: r.Problems, Samples: r.Samples, Avg: r.Avg, AvgLow: r.AvgLow, AvgHigh: r.AvgHigh, Maj: r.Maj, Pass: r.Pass,
		CallsPerProblem: r.CallsPerProblem, ErrorsPerProblem: r.ErrorsPerProblem, ToolErrorShare: r.ToolErrorShare,
		TokensPerResponse: r.TokensPerResponse, Unknown: r.Unknown,
	}
}

// EvalTable renders evaluations as a table of plain text.
func EvalTable(evals []EvalResult) string {
	shown := make([]telemetry.Eval, len(evals))
	for i, e := range evals {
		shown[i] = e.shown()
	}
	var b strings.Builder
	if err := telemetry.WriteEvals(&b, shown); err != nil {
		return err.Error()
	}
	return b.String()
}

// shownProblems is how many held-out problems the report shows a whole trajectory of, before and after training.
const shownProblems = 3

// addTrajectories adds whole trajectories of the first and the last evaluation, on the same problems.
func (s *Scoring) addTrajectories(ctx context.Context, rec Recipe, run string, d *telemetry.ReportData) error {
	c, err := readJSON[CurateResult](ctx, s.Store, curationKey(run))
	if isNotFound(err) || len(d.Evals) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	set, err := s.Runs.Problems(ctx, c.HeldOut)
	if err != nil {
		return err
	}
	tok, err := s.Runs.Tokenizer(ctx, run)
	if err != nil {
		return err
	}
	places := evalPlaces(rec)
	last := places[min(len(d.Evals), len(places))-1]
	for i := range min(shownProblems, d.Evals[0].Problems) {
		for _, at := range []evalPlace{places[0], last} {
			t, err := s.firstSample(ctx, run, at, i, rec.Eval.Samples)
			if err != nil {
				return err
			}
			d.Trajectories = append(d.Trajectories, shownTrajectory(fmt.Sprintf("%s, problem %s", at.name, set[i].ID), set[i], &t, tok))
		}
	}
	return nil
}

func (s *Scoring) firstSample(ctx context.Context, run string, at evalPlace, ordinal, samples int) (agent.Trajectory, error) {
	in := SliceInput{Run: run, Stage: at.stage, Purpose: PurposeEval, Round: at.name, Ordinal: ordinal}
	g, err := readGroup(ctx, s.Store, in, min(samples, SliceSamples))
	if err != nil {
		return agent.Trajectory{}, err
	}
	return g[0], nil
}

func shownTrajectory(title string, p problem.Problem, t *agent.Trajectory, tok *tokenizer.Tokenizer) telemetry.Trajectory {
	out := telemetry.Trajectory{
		Title: title, Reward: t.Reward, Stop: string(t.Stop), Gold: p.Answer, Answer: t.Verdict.Answer, Tokens: t.Counts().Sampled,
		Segments: []telemetry.Segment{{Role: telemetry.RolePrompt, Text: tok.Decode(t.IDs[:t.PromptLen])}},
	}
	end := t.PromptLen
	for _, turn := range t.Turns {
		if turn.Start > end {
			out.Segments = append(out.Segments, telemetry.Segment{Role: telemetry.RoleTool, Text: tok.Decode(t.IDs[end:turn.Start])})
		}
		out.Segments = append(out.Segments, telemetry.Segment{Role: telemetry.RoleModel, Text: tok.Decode(t.IDs[turn.Start:turn.End])})
		end = turn.End
	}
	return out
}
