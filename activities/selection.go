package activities

import (
	"context"
	"fmt"
	"slices"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/store"
)

// Selection turns rollout rounds into optimizer batches and filtered sets. Both are pure functions of the journal.
type Selection struct {
	Runs   *Runs
	Store  store.Store
	Faults store.Faults
}

// SelectBatch makes the optimizer batches of a round by the recipe's algorithm, and makes them durable before any step uses them. For
// GRPO-RoC it rejects the groups whose rewards are all equal, reduces the others from 2G to G by Resample-on-Correct, and gives
// advantages (rStar2-Agent §2.2). Dynamic sampling may ask for another round instead.
func (s *Selection) SelectBatch(ctx context.Context, in SelectInput) (SelectResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := s.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return SelectResult{}, err
	}
	out, err := s.recorded(ctx, in)
	if isNotFound(err) {
		out, err = s.choose(ctx, rec, in, progress)
	}
	if err == nil {
		s.Faults.Point("before-complete", store.BatchKey(in.Run, in.Stage, in.Iteration, 0))
	}
	return out, err
}

// recorded reads what was chosen before. The first batch is written last, so it says that all are there.
func (s *Selection) recorded(ctx context.Context, in SelectInput) (SelectResult, error) {
	first, ref, err := s.read(ctx, in, 0)
	if err != nil {
		return SelectResult{}, err
	}
	if first.Step != in.Step {
		return SelectResult{}, fmt.Errorf("%s is recorded as step %d, asked for as step %d", ref.Key, first.Step, in.Step)
	}
	out := first.result(ref)
	for update := 1; update < first.Updates; update++ {
		more, ref, err := s.read(ctx, in, update)
		if err != nil {
			return SelectResult{}, err
		}
		out.Sequences += len(more.Batch.Sequences)
		out.More = append(out.More, ref)
	}
	return out, nil
}

func (s *Selection) read(ctx context.Context, in SelectInput, update int) (batch, Ref, error) {
	key := store.BatchKey(in.Run, in.Stage, in.Iteration, update)
	body, _, err := s.Store.Get(ctx, key)
	if err != nil {
		return batch{}, Ref{}, err
	}
	b, err := decodeBatch(body)
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return b, Ref{Key: key, Digest: digest(body)}, err
}

// choose reads the rounds, selects, and writes the batches. The first writer's stand.
func (s *Selection) choose(ctx context.Context, rec Recipe, in SelectInput, progress *pulse) (SelectResult, error) {
	alg, err := rec.RL.Parameters()
	if err != nil {
		return SelectResult{}, InputError(err)
	}
	c := newChooser(rec, alg, in)
	if alg.Penalty == rl.ReleasedPenalty {
		if c.tok, err = s.Runs.Tokenizer(ctx, in.Run); err != nil {
			return SelectResult{}, err
		}
	}
	for _, round := range append(slices.Clone(in.Earlier), Round{in.Iteration, in.FirstOrdinal, in.Prompts}) {
		if err := s.readRound(ctx, c, round, progress); err != nil {
			return SelectResult{}, err
		}
	}
	again, err := c.choose()
	if err != nil || again {
		return SelectResult{Again: again}, err
	}
	parts := c.parts()
	for update := len(parts) - 1; update >= 0; update-- {
		body, err := parts[update].encode()
		if err != nil {
			return SelectResult{}, err
		}
		if _, _, err := store.PutOnce(ctx, s.Store, store.BatchKey(in.Run, in.Stage, in.Iteration, update), body); err != nil {
			return SelectResult{}, err
		}
	}
	out, err := s.recorded(ctx, in)
	out.Timings = c.out.timings
	return out, err
}

func (s *Selection) readRound(ctx context.Context, c *chooser, r Round, progress *pulse) error {
	for i := range r.Prompts {
		slice := SliceInput{Run: c.in.Run, Stage: c.in.Stage, Purpose: PurposeRollout, Round: store.IterationGroup(r.Iteration), Ordinal: r.FirstOrdinal + i}
		g, err := readGroup(ctx, s.Store, slice, c.stage.Samples)
		if err != nil {
			return err
		}
		c.read(r.FirstOrdinal+i, g)
		progress.step()
	}
	return nil
}

// readGroup reads all samples of one prompt from its slices' journals.
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
