package activities

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

// Selection turns rollout rounds into optimizer batches and filtered sets. Both are pure functions of the journal.
type Selection struct {
	Runs   *Runs
	Store  store.Store
	Faults store.Faults
}

// SelectBatch rejects the groups whose rewards are all equal, reduces the others from 2G to G by Resample-on-Correct, gives
// advantages, and makes the batch durable before any step uses it (rStar2-Agent §2.2).
func (s *Selection) SelectBatch(ctx context.Context, in SelectInput) (SelectResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := s.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return SelectResult{}, err
	}
	key := store.BatchKey(in.Run, in.Stage, in.Iteration)
	var timings Timings
	body, _, err := s.Store.Get(ctx, key)
	if isNotFound(err) {
		body, timings, err = s.choose(ctx, rec, in, key, progress)
	}
	if err != nil {
		return SelectResult{}, err
	}
	b, err := decodeBatch(body)
	if err != nil {
		return SelectResult{}, fmt.Errorf("%s: %w", key, err)
	}
	if b.Step != in.Step {
		return SelectResult{}, fmt.Errorf("%s is recorded as step %d, asked for as step %d", key, b.Step, in.Step)
	}
	s.Faults.Point("before-complete", key)
	out := b.result(Ref{Key: key, Digest: digest(body)})
	out.Timings = timings
	return out, nil
}

// choose reads the round, selects, and writes the batch. The first writer's batch stands.
func (s *Selection) choose(ctx context.Context, rec Recipe, in SelectInput, key string, progress *pulse) ([]byte, Timings, error) {
	stage := rec.Stages[in.StageIndex]
	groups := make([][]agent.Trajectory, in.Prompts)
	for i := range groups {
		var err error
		slice := SliceInput{Run: in.Run, Stage: in.Stage, Purpose: PurposeRollout, Round: store.IterationGroup(in.Iteration), Ordinal: in.FirstOrdinal + i}
		if groups[i], err = s.group(ctx, slice, stage.Samples); err != nil {
			return nil, Timings{}, err
		}
		progress.step()
	}
	b, err := newChooser(rec, in).batch(groups)
	if err != nil {
		return nil, Timings{}, err
	}
	body, err := b.encode()
	if err != nil {
		return nil, Timings{}, err
	}
	winner, _, err := store.PutOnce(ctx, s.Store, key, body)
	return winner, b.timings, err
}

// group reads all samples of one prompt from its slices' journals.
func (s *Selection) group(ctx context.Context, in SliceInput, samples int) ([]agent.Trajectory, error) {
	return readGroup(ctx, s.Store, in, samples)
}

func readGroup(ctx context.Context, st store.Store, in SliceInput, samples int) ([]agent.Trajectory, error) {
	var out []agent.Trajectory
	for in.Slice = 0; len(out) < samples; in.Slice++ {
		in.FirstSample = len(out)
		in.Samples = min(SliceSamples, samples-len(out))
		records, err := store.ReadJournal(ctx, st, sliceJournal(in))
		if err != nil {
			return nil, err
		}
		logs, err := readLogs(records)
		if err != nil {
			return nil, err
		}
		got, err := logs.samples(in)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// SliceSamples is how many samples of a prompt one slice makes: the unit by which work is balanced over workers.
const SliceSamples = 8

// chooser applies a recipe's rules to the groups of one round.
type chooser struct {
	rec   Recipe
	in    SelectInput
	stage Stage
	key   philox.Key
	out   batch
}

func newChooser(rec Recipe, in SelectInput) *chooser {
	return &chooser{rec: rec, in: in, stage: rec.Stages[in.StageIndex], key: philox.NewKey(rec.Seed),
		out: batch{Stage: in.Stage, Iteration: in.Iteration, Step: in.Step, Version: in.Weights.Version, Groups: in.Prompts}}
}

func (c *chooser) batch(groups [][]agent.Trajectory) (batch, error) {
	for i, g := range groups {
		c.out.observe(g)
		if err := c.addGroup(c.in.FirstOrdinal+i, g); err != nil {
			return batch{}, err
		}
	}
	c.out.finish()
	return c.out, nil
}

// addGroup adds what one group contributes, if anything.
func (c *chooser) addGroup(ordinal int, g []agent.Trajectory) error {
	samples := make([]rl.Sample, 0, len(g))
	for i := range g {
		if g[i].Verdict.Outcome == agent.Unknown {
			c.out.UnknownGroups++ // a verdict is missing, so the group's rewards are not known
			return nil
		}
		samples = append(samples, sampleOf(i, &g[i]))
	}
	switch rl.Classify(samples) {
	case rl.GroupAllZero:
		c.out.AllWrong++
		return nil
	case rl.GroupAllNonzero:
		c.out.AllCorrect++
		return nil
	}
	chosen, err := rl.Select(samples, c.stage.Keep, c.options(), c.uniform(ordinal))
	if err != nil {
		return err
	}
	return c.addChosen(ordinal, g, chosen.Kept)
}

func (c *chooser) options() rl.SelectOptions {
	if c.rec.RL.Selection == "code" {
		return rl.SelectOptions{Method: rl.RoCReleased, MinPositive: 2, MinNegative: 2}
	}
	return rl.SelectOptions{Method: rl.RoCPaper}
}

func (c *chooser) uniform(ordinal int) func(i int) float64 {
	return func(i int) float64 {
		return c.key.Uniform(philox.Address{
			Purpose: philox.Select, Stage: c.in.StageIndex, Iteration: c.in.Iteration, Ordinal: ordinal, Sample: i,
		})
	}
}

// addChosen gives the survivors of a group their advantages and adds them to the batch.
func (c *chooser) addChosen(ordinal int, g []agent.Trajectory, kept []int) error {
	rewards := make([]float64, len(kept))
	for i, k := range kept {
		rewards[i] = g[k].Reward
	}
	advantages, degenerate, err := rl.Advantages(rewards, rl.MeanStd)
	if err != nil {
		return err
	}
	if degenerate { // the halves of the paper's rule can leave one kind only: one wrong answer of sixteen, halved, is none
		c.out.Degenerate++
		return nil
	}
	for i, k := range kept {
		t := g[k]
		c.out.Batch.Sequences = append(c.out.Batch.Sequences, train.Sequence{
			Ordinal: (ordinal-c.in.FirstOrdinal)*c.stage.Samples + k, IDs: t.IDs, Mask: t.Mask, LogProbs: t.LogProbs, Advantage: float32(advantages[i]),
		})
	}
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
