package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// An iteration of STaR is a stage of its own in the store (recipe.Stage.Iteration): its journals, the one batch object that all its
// steps draw from, its checkpoints and weights. It begins, like every stage, with a checkpoint: the base with a fresh optimizer. So
// a replay within an iteration starts at the base and not at the policy before, by the rules that hold for every stage.

// STaREnds tells by which rule a stage of STaR is over, "" while it goes on; scores begin with the base's. It is pure.
func STaREnds(s Stage, scores []float64) string {
	return rl.STaREnds(scores, s.Star.Iterations, s.Star.Window, s.Star.Tolerance)
}

// STaRBest is the position of the best score, the earliest among equals. It is pure.
func STaRBest(scores []float64) int { return rl.Best(scores) }

// STaRSteps is how many optimizer steps an iteration has. It is pure.
func STaRSteps(s Stage, iteration int) (int, error) {
	return rl.STaRSteps(iteration, s.Star.FirstSteps, s.Star.Growth)
}

// STaRRound is the part of a stage's problems that an iteration samples. It is pure.
func STaRRound(s Stage, iteration, problems int) (firstOrdinal, prompts int) {
	return rl.STaRRound(iteration, s.Prompts, problems)
}

// HintRound names the round that samples an iteration's unsolved problems again.
func HintRound(iteration int) string { return store.IterationGroup(iteration) + "-" + PurposeHint }

// hinted is the question of a problem with its answer as a hint.
func hinted(s Stage, p problem.Problem) string {
	return p.Problem + strings.ReplaceAll(s.Star.Hint, recipe.AnswerMark, p.Answer)
}

// SolutionsInput asks for what an iteration of STaR trains on.
type SolutionsInput struct {
	SelectInput         // Stage is the iteration's name in the store, Step the first that the solutions give
	Problems    Dataset `json:"problems"` // the set that the round was drawn from
	Hinted      Dataset `json:"hinted"`   // of these, those that were sampled again with a hint
	Steps       int     `json:"steps"`
}

// UnsolvedResult is the part of a round's problems that no sample solves.
type UnsolvedResult struct {
	Problems Dataset `json:"problems"`
	TooLong  int     `json:"too_long,omitempty"` // left out, since their prompt with a hint exceeds agent.max_prompt_tokens
}

// SolutionsResult is the object that all steps of an iteration draw from. Kept 0 means that nothing was solved: there are no steps.
type SolutionsResult struct {
	Batch        Ref     `json:"batch"`
	Steps        int     `json:"steps"`
	Kept         int     `json:"kept"`
	Groups       int     `json:"groups"`                 // problems sampled
	Solved       int     `json:"solved"`                 // of these, with a solution of the policy's own
	Hinted       int     `json:"hinted,omitempty"`       // sampled again with a hint
	Rationalized int     `json:"rationalized,omitempty"` // of these, solved
	Unknown      int     `json:"unknown,omitempty"`      // groups left out, since a verdict in them is unknown
	Reward       float64 `json:"reward"`                 // mean over all samples without a hint
	Timings      Timings `json:"timings"`
}

// Unsolved makes the problems of a round durable that have no correct sample, in the round's order (STaR Alg 1, line 4). A group
// with an unknown verdict is not among them: whether it is solved is not known.
func (s *Selection) Unsolved(ctx context.Context, in SolutionsInput) (UnsolvedResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	c, err := s.solutions(ctx, in, progress)
	if err != nil {
		return UnsolvedResult{}, err
	}
	set, err := s.Runs.Problems(ctx, in.Problems)
	if err != nil {
		return UnsolvedResult{}, err
	}
	rec, tok, err := s.recipeAndTokenizer(ctx, in.Run)
	if err != nil {
		return UnsolvedResult{}, err
	}
	order := promptOrder{key: c.key, stage: in.StageIndex, n: len(set)}
	var out UnsolvedResult
	var unsolved []problem.Problem
	for _, g := range c.groups {
		if g.class != rl.GroupAllZero {
			continue
		}
		p := set[order.index(g.ordinal)]
		if promptTokens(rec, tok, hinted(c.stage, p)) > rec.Agent.MaxPromptTokens {
			out.TooLong++
			continue
		}
		unsolved = append(unsolved, p)
	}
	out.Problems, err = putProblems(ctx, s.Store, in.Run+"-"+in.Stage+"-unsolved", unsolved)
	return out, err
}

// KeepSolutions makes the correct trajectories of a round durable as the object that the iteration's steps draw from, those of
// hinted problems with the hint taken away. The first writer's stands.
func (s *Selection) KeepSolutions(ctx context.Context, in SolutionsInput) (SolutionsResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	out, err := s.kept(ctx, in)
	if !isNotFound(err) {
		return out, err
	}
	c, err := s.solutions(ctx, in, progress)
	if err != nil {
		return out, err
	}
	if err := c.keepSolved(); err != nil {
		return out, err
	}
	if err := s.keepHinted(ctx, c, in, progress); err != nil {
		return out, err
	}
	b := c.out
	b.Batch.Sequences = slices.Concat(c.chosen...)
	if len(b.Batch.Sequences) > 0 {
		b.Draw, b.Updates = c.stage.Star.Batch, in.Steps
	}
	body, err := b.encode()
	if err != nil {
		return out, err
	}
	key := store.BatchKey(in.Run, in.Stage, in.Iteration, 0)
	if _, _, err := store.PutOnce(ctx, s.Store, key, body); err != nil {
		return out, err
	}
	out, err = s.kept(ctx, in)
	out.Timings = c.out.timings
	if err == nil {
		s.Faults.Point("before-complete", key)
	}
	return out, err
}

// kept reads what an iteration's steps draw from.
func (s *Selection) kept(ctx context.Context, in SolutionsInput) (SolutionsResult, error) {
	b, ref, err := s.read(ctx, in.SelectInput, 0)
	if err != nil {
		return SolutionsResult{}, err
	}
	if b.Step != in.Step {
		return SolutionsResult{}, fmt.Errorf("%s is recorded from step %d on, asked for from step %d", ref.Key, b.Step, in.Step)
	}
	return SolutionsResult{
		Batch: ref, Steps: b.Updates, Kept: len(b.Batch.Sequences), Groups: b.Groups, Solved: b.Solved, Hinted: b.Hinted,
		Rationalized: b.Rationalized, Unknown: b.UnknownGroups, Reward: b.Reward,
	}, nil
}

// solutions reads the round.
func (s *Selection) solutions(ctx context.Context, in SolutionsInput, progress *pulse) (*chooser, error) {
	rec, err := s.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	alg, err := rec.RL.Parameters()
	if err != nil {
		return nil, InputError(err)
	}
	c := newChooser(rec, alg, in.SelectInput)
	if err := s.readRound(ctx, c, Round{in.Iteration, in.FirstOrdinal, in.Prompts}, progress); err != nil {
		return nil, err
	}
	c.out.finish()
	return c, nil
}

func (s *Selection) recipeAndTokenizer(ctx context.Context, run string) (Recipe, *tokenizer.Tokenizer, error) {
	rec, err := s.Runs.Recipe(ctx, run)
	if err != nil {
		return rec, nil, err
	}
	tok, err := s.Runs.Tokenizer(ctx, run)
	return rec, tok, err
}

// keepSolved adds the solutions that the policy found on its own.
func (c *chooser) keepSolved() error {
	for _, g := range c.groups {
		n := len(c.chosen)
		c.chosen = append(c.chosen, nil)
		if err := c.addGroup(g); err != nil {
			return err
		}
		if len(c.chosen[n]) > 0 {
			c.out.Solved++
		}
	}
	return nil
}

// keepHinted adds the solutions that the policy found with a hint: the ids of the prompt without it, and those of the response as
// they were sampled (STaR §3.3).
func (s *Selection) keepHinted(ctx context.Context, c *chooser, in SolutionsInput, progress *pulse) error {
	if in.Hinted.Problems == 0 {
		return nil
	}
	set, err := s.Runs.Problems(ctx, in.Hinted)
	if err != nil {
		return err
	}
	rec, tok, err := s.recipeAndTokenizer(ctx, in.Run)
	if err != nil {
		return err
	}
	for i, p := range set {
		slice := SliceInput{Run: in.Run, Stage: in.Stage, Purpose: PurposeHint, Round: HintRound(in.Iteration), Ordinal: i}
		all, err := readGroup(ctx, s.Store, slice, c.stage.Samples)
		if err != nil {
			return err
		}
		progress.step()
		c.out.Hinted++
		g, known := groupOf(in.FirstOrdinal+in.Prompts+i, all) // ordinals after the round's: sequences need their own
		if !known {
			c.out.UnknownGroups++
			continue
		}
		prompt := Template(rec).PromptIDs(tok, p.Problem)
		for k := range g.all {
			unhint(&g.all[k], prompt)
		}
		n := len(c.chosen)
		c.chosen = append(c.chosen, nil)
		if err := c.addCorrect(g); err != nil {
			return err
		}
		if len(c.chosen[n]) > 0 {
			c.out.Rationalized++
		}
	}
	return nil
}
