package activities

import (
	"context"
	"fmt"
	"strings"

	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/telemetry"
)

// Iteration is one policy of a stage of STaR with its score and what it was trained on. The 0th is the base, which nothing was.
type Iteration struct {
	Iteration    int     `json:"iteration"`
	Weights      Weights `json:"weights"`
	Score        float64 `json:"score"` // 0 to 1
	Steps        int     `json:"steps"`
	Problems     int     `json:"problems"`               // sampled by the policy before
	Solved       int     `json:"solved"`                 // of these, by that policy on its own
	Hinted       int     `json:"hinted,omitempty"`       // sampled again with a hint
	Rationalized int     `json:"rationalized,omitempty"` // of these, solved
	TooLong      int     `json:"too_long,omitempty"`     // not sampled again, since the prompt with its hint is too long
	Unknown      int     `json:"unknown,omitempty"`      // left out, since a verdict is unknown
	Solutions    int     `json:"solutions"`              // that the steps draw from
}

// RecordInput asks for the record of one policy of a stage.
type RecordInput struct {
	Run       string    `json:"run"`
	Stage     string    `json:"stage"`
	Iteration Iteration `json:"iteration"`
}

// RecordIteration makes a scored policy's figures durable, for reports.
func (s *Scoring) RecordIteration(ctx context.Context, in RecordInput) error {
	body, err := encodeIndented(in.Iteration)
	if err != nil {
		return fmt.Errorf("iteration %d of %s/%s: %w", in.Iteration.Iteration, in.Run, in.Stage, err)
	}
	return store.PutSame(ctx, s.Store, store.ArtifactKey(in.Run, in.Stage, fmt.Sprintf("%s%03d.json", iterationName, in.Iteration.Iteration)), body)
}

const iterationName = "iteration-"

// Iterations reads the policies of a stage that have been scored, in order.
func Iterations(ctx context.Context, s store.Store, run, stage string) ([]Iteration, error) {
	prefix := store.ArtifactsPrefix(run, stage)
	entries, err := s.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var out []Iteration
	for _, e := range entries {
		if !strings.HasPrefix(e.Key, prefix+iterationName) {
			continue
		}
		it, err := readJSON[Iteration](ctx, s, e.Key)
		if err != nil {
			return nil, err
		}
		out = append(out, it)
	}
	return out, nil
}

// Scores are the iterations' scores in order.
func Scores(all []Iteration) []float64 {
	out := make([]float64, len(all))
	for i, it := range all {
		out[i] = it.Score
	}
	return out
}

// addIterations adds the scores of stages of STaR, and what the best of each is.
func (s *Scoring) addIterations(ctx context.Context, rec Recipe, run string, d *telemetry.ReportData) error {
	for _, st := range rec.Stages {
		if st.Star == nil {
			continue
		}
		all, err := Iterations(ctx, s.Store, run, st.Name)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			continue
		}
		shown := telemetry.Iterations{Stage: st.Name, Score: scoreName(st), Scores: Scores(all), Best: STaRBest(Scores(all))}
		d.Iterations = append(d.Iterations, shown)
		d.Facts = append(d.Facts, telemetry.Fact{Name: st.Name + ", best iteration", Value: bestOf(st, all)})
		for _, it := range all[1:] {
			d.Facts = append(d.Facts, telemetry.Fact{Name: fmt.Sprintf("%s, iteration %d", st.Name, it.Iteration), Value: it.String()})
		}
	}
	return nil
}

func starFact(st Stage) string {
	prompts := "all problems"
	if st.Prompts > 0 {
		prompts = fmt.Sprintf("%d problems", st.Prompts)
	}
	return fmt.Sprintf("up to %d iterations from its first policy, %d steps of %d solutions growing by %g; %s × %d samples, %d tokens, %d turns",
		st.Star.Iterations, st.Star.FirstSteps, st.Star.Batch, st.Star.Growth, prompts, st.Samples, st.ResponseTokens, st.Turns)
}

func scoreName(st Stage) string {
	if st.Star.Score == recipe.ScoreHeldOut {
		return "held-out score"
	}
	return "solve rate"
}

// bestOf says which policy a stage of STaR gives and why it has no more iterations.
func bestOf(st Stage, all []Iteration) string {
	scores := Scores(all)
	best := STaRBest(scores)
	text := fmt.Sprintf("%d of %d, %s %.1f%% (base %.1f%%)", best, len(all)-1, scoreName(st), 100*scores[best], 100*scores[0])
	switch STaREnds(st, scores) {
	case "plateau":
		text += fmt.Sprintf("; ended at its plateau: the last %d brought no more than %g over what came before", st.Star.Window, st.Star.Tolerance)
	case "iterations":
		text += fmt.Sprintf("; ended after all %d iterations, without a plateau", st.Star.Iterations)
	}
	return text
}

// String tells an iteration in a line.
func (it Iteration) String() string {
	text := fmt.Sprintf("score %.1f%%; %d steps on %d solutions of %d of %d problems", 100*it.Score, it.Steps, it.Solutions, it.Solved+it.Rationalized, it.Problems)
	if it.Hinted > 0 {
		text += fmt.Sprintf(", %d of them rationalized (%d hinted)", it.Rationalized, it.Hinted)
	}
	return text
}
