package activities

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
	"github.com/restar-rl/restar/workers/train"
)

// FineTuneMetrics are the figures of the SFT steps between two checkpoints, as stored under metrics.
type FineTuneMetrics struct {
	From     int       `json:"from"`
	To       int       `json:"to"`
	Loss     []float64 `json:"loss"` // nats a token, one a step
	GradNorm []float64 `json:"grad_norm"`
	Tokens   int64     `json:"tokens"`
	Digest   string    `json:"weights_digest"`
}

// FineTuneSteps applies SFT steps from the checkpoint in.From to the checkpoint in.To. The demonstrations of each step are a
// pure function of the seed and the step, so an attempt that dies is made again from its checkpoint to the same bits.
func (t *Trainer) FineTuneSteps(ctx context.Context, in FineTuneInput) (FineTuneResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return FineTuneResult{}, err
	}
	h := t.lock(in.Run)
	defer h.mu.Unlock()
	if out, done, err := t.fineTuned(ctx, in); done || err != nil {
		return out, err
	}
	s, err := t.loadCheckpoint(ctx, rec, in.Run, StageSFT, int64(in.From))
	if err != nil {
		return FineTuneResult{}, err
	}
	lessons, err := t.lessons(ctx, rec, in)
	if err != nil {
		return FineTuneResult{}, err
	}
	if err := lessons.fit(s.Model.Config.MaxPosition); err != nil {
		return FineTuneResult{}, InputError(err)
	}
	shared := &holding{}
	if err := t.take(ctx, shared, s, fmt.Sprintf("%s/%s from %d", in.Run, StageSFT, in.From)); err != nil {
		return FineTuneResult{}, err
	}
	defer shared.drop()
	m := FineTuneMetrics{From: in.From, To: in.To}
	for step := int64(in.From) + 1; step <= int64(in.To); step++ {
		if err := t.fineTuneStep(ctx, rec, in.Run, s, lessons.batch(step), step, &m); err != nil {
			return FineTuneResult{}, err
		}
		progress.step()
	}
	return t.saveFineTuned(ctx, rec, in, s, m)
}

func (t *Trainer) fineTuneStep(ctx context.Context, rec Recipe, run string, s *train.State, b train.Batch, step int64, m *FineTuneMetrics) error {
	if err := t.audit(ctx, run, StageSFT, step, s.AppliedStep, false); err != nil {
		return err
	}
	got, err := train.Step(ctx, s, b, step, train.Objective{Kind: train.SFT}, fineTuneOptimizer(rec))
	if err != nil {
		return fmt.Errorf("SFT step %d of %s: %w", step, run, err)
	}
	m.Loss = append(m.Loss, got.Loss)
	m.GradNorm = append(m.GradNorm, got.GradNorm)
	m.Tokens += int64(got.Tokens)
	return nil
}

// fineTuned answers for steps whose end is durable.
func (t *Trainer) fineTuned(ctx context.Context, in FineTuneInput) (FineTuneResult, bool, error) {
	m, err := readJSON[FineTuneMetrics](ctx, t.Store, store.MetricsKey(in.Run, StageSFT, in.To, 0))
	if isNotFound(err) {
		return FineTuneResult{}, false, nil
	}
	return m.result(), err == nil, err
}

func (m FineTuneMetrics) result() FineTuneResult {
	sum := 0.0
	for _, l := range m.Loss {
		sum += l
	}
	return FineTuneResult{
		Weights: Weights{Stage: StageSFT, Version: versionOf(StageSFT, int64(m.To)), Digest: m.Digest},
		Loss:    sum / float64(max(len(m.Loss), 1)), Tokens: m.Tokens,
	}
}

// saveFineTuned makes the reached state durable; its metrics, written last, say that it is.
func (t *Trainer) saveFineTuned(ctx context.Context, rec Recipe, in FineTuneInput, s *train.State, m FineTuneMetrics) (FineTuneResult, error) {
	m.Digest = s.WeightsDigest()
	out := m.result()
	if err := t.publish(ctx, in.Run, out.Weights, s.Model); err != nil {
		return out, err
	}
	body, err := encodeState(ctx, s)
	if err != nil {
		return out, err
	}
	if err := t.writeCheckpoint(ctx, rec, in.Run, StageSFT, int64(in.To), body); err != nil {
		return out, err
	}
	if body, err = encodeIndented(m); err != nil {
		return out, err
	}
	return out, store.PutSame(ctx, t.Store, store.MetricsKey(in.Run, StageSFT, in.To, 0), body)
}

// lessons are the demonstrations in ids, and the order in which steps take them.
type lessons struct {
	sequences []train.Sequence
	order     promptOrder
	size      int
}

func (t *Trainer) lessons(ctx context.Context, rec Recipe, in FineTuneInput) (*lessons, error) {
	tok, err := t.Runs.Tokenizer(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	demos, err := t.Runs.Demos(ctx, in.Demos)
	if err != nil {
		return nil, err
	}
	return newLessons(rec, tok, demos), nil
}

func newLessons(rec Recipe, tok *tokenizer.Tokenizer, demos []problem.Demo) *lessons {
	tpl := Template(rec)
	out := &lessons{size: rec.SFT.Batch, order: promptOrder{key: philox.NewKey(rec.Seed), stage: sftShuffle, n: len(demos)}}
	for _, d := range demos {
		ids, mask := tpl.Conversation(tok, d.Problem, conversationTurns(d))
		out.sequences = append(out.sequences, train.Sequence{IDs: ids, Mask: mask, LogProbs: make([]float32, len(ids)), Advantage: 1})
	}
	return out
}

// fit checks that the model has a position for every token.
func (l *lessons) fit(positions int) error {
	for i, s := range l.sequences {
		if len(s.IDs) > positions {
			return fmt.Errorf("demonstration %d has %d tokens, the model %d positions: leave it out or shorten it", i+1, len(s.IDs), positions)
		}
	}
	return nil
}

// sftShuffle is the stage number of the demonstrations' order: apart from every stage of a recipe, which has fewer than 200.
const sftShuffle = 255

// batch is the demonstrations of one step, in the order of the run's shuffle.
func (l *lessons) batch(step int64) train.Batch {
	var b train.Batch
	for i := range l.size {
		s := l.sequences[l.order.index((int(step)-1)*l.size+i)]
		s.Ordinal = i
		b.Sequences = append(b.Sequences, s)
	}
	return b
}
