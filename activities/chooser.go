package activities

import (
	"fmt"
	"slices"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/tokenizer"
	"github.com/restar-rl/restar/workers/train"
)

// chooser applies a recipe's algorithm to the groups of one batch.
type chooser struct {
	in     SelectInput
	stage  Stage
	alg    rl.Algorithm
	key    philox.Key
	first  int                  // ordinal
	tok    *tokenizer.Tokenizer // of the run, where the algorithm's penalty reads text
	groups []group
	chosen [][]train.Sequence // by group that trains, in ordinal order
	out    batch              // figures of all groups
}

// group is one prompt's samples.
type group struct {
	ordinal int
	all     []agent.Trajectory
	samples []rl.Sample
	class   rl.GroupClass // empty if a verdict is missing: the group's rewards are not known
}

func newChooser(rec Recipe, alg rl.Algorithm, in SelectInput) *chooser {
	c := &chooser{in: in, stage: rec.Stages[in.StageIndex], alg: alg, key: philox.NewKey(rec.Seed), first: in.FirstOrdinal,
		out: batch{Stage: in.Stage, Iteration: in.Iteration, Step: in.Step, Version: in.Weights.Version}}
	if len(in.Earlier) > 0 {
		c.first = in.Earlier[0].FirstOrdinal
	}
	return c
}

// read takes in a group.
func (c *chooser) read(ordinal int, all []agent.Trajectory) {
	c.out.observe(all)
	c.out.Groups++
	if slices.ContainsFunc(all, func(t agent.Trajectory) bool { return t.Stop == agent.Lost }) {
		c.out.LostGroups++
	}
	g, known := groupOf(ordinal, all)
	if !known {
		c.out.UnknownGroups++
	}
	if c.alg.Penalty == rl.ReleasedPenalty {
		for i := range g.samples {
			g.samples[i].LegacyText = c.tok.Decode(all[i].IDs[all[i].PromptLen:])
		}
	}
	switch g.class {
	case rl.GroupAllZero:
		c.out.AllWrong++
	case rl.GroupAllNonzero:
		c.out.AllCorrect++
	}
	c.groups = append(c.groups, g)
}

// choose decides which groups train and with what, or that another round is needed first.
func (c *chooser) choose() (again bool, err error) {
	c.out.finish()
	if c.alg.Equal == rl.RefillEqual {
		if again, err = c.fill(); again || err != nil {
			return again, err
		}
	}
	for _, g := range c.groups {
		before := len(c.chosen)
		c.chosen = append(c.chosen, nil)
		if err := c.addGroup(g); err != nil {
			return false, err
		}
		if !slices.ContainsFunc(c.chosen[before], trains) { // of short responses a share of the tokens may be none
			c.out.Tokenless += len(c.chosen[before])
			c.chosen = c.chosen[:before]
		}
	}
	return false, nil
}

// trains tells whether a sequence has a token in the loss.
func trains(s train.Sequence) bool { return slices.Contains(s.Mask, 1) }

// fill keeps the mixed groups that fill the batch, by ordinal.
func (c *chooser) fill() (again bool, err error) {
	outcomes := make([]rl.Outcome, len(c.groups))
	for i, g := range c.groups {
		outcomes[i] = rl.Outcome{Ordinal: g.ordinal, Class: g.class}
	}
	f, err := rl.Fill(outcomes, c.stage.Prompts)
	if err != nil {
		return false, err
	}
	if rl.RefillNext(len(f.Take), c.stage.Prompts, len(c.in.Earlier)+1, c.alg.MaxRounds) {
		return true, nil
	}
	c.out.Surplus = len(f.Surplus)
	c.groups = slices.DeleteFunc(c.groups, func(g group) bool { return !slices.Contains(f.Take, g.ordinal) })
	return false, nil
}

// parts cuts the groups that train into the batches of the round's updates, in ordinal order. Without such groups there is one empty batch.
func (c *chooser) parts() []batch {
	n := max(1, min(c.alg.Updates, len(c.chosen)))
	parts := make([]batch, n)
	for u := range parts {
		parts[u] = c.out
		parts[u].Step, parts[u].Update = c.in.Step+int64(u), u
		if n > 1 {
			parts[u].Updates = n
		}
		parts[u].Batch.Sequences = slices.Concat(c.chosen[u*len(c.chosen)/n : (u+1)*len(c.chosen)/n]...)
	}
	return parts
}

// addGroup adds what one group contributes, if anything.
func (c *chooser) addGroup(g group) error {
	switch {
	case g.class == rl.GroupEmpty:
		return nil
	case c.alg.Imitate:
		return c.addCorrect(g)
	case g.class != rl.GroupMixed && c.alg.Equal != rl.KeepEqual:
		return nil
	}
	chosen, err := rl.Select(g.samples, c.stage.Keep, c.options(), c.uniform(g.ordinal))
	if err != nil {
		return err
	}
	return c.addChosen(g, chosen.Kept)
}

func (c *chooser) options() rl.SelectOptions {
	return rl.SelectOptions{
		Method: c.alg.Selection, LegacyPenalty: c.alg.Penalty == rl.ReleasedPenalty, MinPositive: c.alg.MinPositive, MinNegative: c.alg.MinNegative,
	}
}

func (c *chooser) uniform(ordinal int) func(i int) float64 {
	return func(i int) float64 {
		return c.key.Uniform(philox.Address{
			Purpose: philox.Select, Stage: c.in.StageIndex, Iteration: c.in.Iteration, Ordinal: ordinal, Sample: i,
		})
	}
}

// addChosen gives the survivors of a group their advantages and adds them to the batch.
func (c *chooser) addChosen(g group, kept []int) error {
	survivors, lengths := make([]rl.Sample, len(kept)), make([]int, len(kept))
	for i, k := range kept {
		survivors[i], lengths[i] = g.samples[k], g.all[k].ResponseLen()
	}
	rewards, err := c.alg.Outcomes(survivors, lengths, c.stage.ResponseTokens)
	if err != nil {
		return err
	}
	advantages, degenerate, err := c.advantages(g, kept, rewards)
	if err != nil {
		return err
	}
	if degenerate && c.alg.Equal != rl.KeepEqual { // the halves of the paper's rule can leave one kind only: one wrong answer of sixteen, halved, is none
		c.out.Degenerate++
		return nil
	}
	for i, k := range kept {
		if c.alg.Overlong == rl.OverlongFilter && survivors[i].Truncated {
			c.out.Filtered++ // it counted in the group's mean
			continue
		}
		if err := c.add(g, k, advantages[i]); err != nil {
			return err
		}
	}
	return nil
}

// addCorrect adds the distinct correct samples of a group: what rejection-sampling fine-tuning imitates.
func (c *chooser) addCorrect(g group) error {
	content := func(i int) string { return fmt.Sprint(g.all[i].IDs) }
	kept, err := rl.KeepCorrect(g.samples, content, c.alg.PerProblem)
	if err != nil {
		return err
	}
	for _, k := range kept {
		if err := c.add(g, k, advantage{of: 1}); err != nil {
			return err
		}
	}
	return nil
}

// add makes a trajectory a sequence of the batch. Tokens that the algorithm leaves out of the loss leave the mask.
func (c *chooser) add(g group, sample int, a advantage) error {
	t := &g.all[sample]
	mask, logProbs := t.Mask, t.LogProbs
	if c.alg.EntropyTop < 1 {
		var err error
		if mask, err = rl.HighEntropyMask(t.Entropy, t.Mask, c.alg.EntropyTop); err != nil {
			return err
		}
		logProbs = slices.Clone(t.LogProbs)
		for i, m := range mask {
			if m == 0 {
				logProbs[i] = 0
			}
		}
	}
	last := len(c.chosen) - 1
	c.chosen[last] = append(c.chosen[last], train.Sequence{
		Ordinal: (g.ordinal-c.first)*c.stage.Samples + sample, IDs: t.IDs, Mask: mask, LogProbs: logProbs,
		Advantage: a.of, Advantages: a.each,
	})
	return nil
}

// sampleOf is what the rules need to know of a trajectory.
func sampleOf(index int, t *agent.Trajectory) rl.Sample {
	c := t.Counts()
	return rl.Sample{
		Index: index, Reward: t.Reward, Calls: c.Calls, CallErrors: c.Errors, AnswerOpen: t.Answers.Open, AnswerClose: t.Answers.Close,
		AnswerPairs: t.Answers.Pairs, Turns: c.Turns, Truncated: t.Truncated(),
	}
}
