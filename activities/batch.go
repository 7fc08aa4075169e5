package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/train"
)

// batch is what one rollout round gives to the optimizer, with the figures of all its samples. Its object is one line of
// JSON, then the sequences in the trainer's own encoding.
type batch struct {
	Stage         string  `json:"stage"`
	Iteration     int     `json:"iteration"`
	Step          int64   `json:"step"`
	Update        int     `json:"update,omitempty"`       // of the iteration's updates, from 0
	Updates       int     `json:"updates,omitempty"`      // of the iteration, if more than one
	Draw          int     `json:"draw,omitempty"`         // sequences that each of the updates draws from this object's; 0: it is one batch
	Solved        int     `json:"solved,omitempty"`       // groups with a solution that is drawn from
	Hinted        int     `json:"hinted,omitempty"`       // groups sampled again with a hint
	Rationalized  int     `json:"rationalized,omitempty"` // of these, with a solution
	Surplus       int     `json:"surplus,omitempty"`      // mixed groups beyond a refilled batch, left out
	Version       string  `json:"version"`                // of the weights that sampled every sequence
	Groups        int     `json:"groups"`
	AllCorrect    int     `json:"all_correct"`
	AllWrong      int     `json:"all_wrong"`
	UnknownGroups int     `json:"unknown_groups"`
	LostGroups    int     `json:"lost_groups,omitempty"` // of these, for a sample that the infrastructure lost
	Degenerate    int     `json:"degenerate"`            // mixed groups whose survivors all have one reward
	Filtered      int     `json:"filtered,omitempty"`    // truncated samples left out of the loss
	Tokenless     int     `json:"tokenless,omitempty"`   // samples of groups in which no token is among those of highest entropy
	Samples       int     `json:"samples"`
	Unknown       int     `json:"unknown,omitempty"`    // of the samples
	Duplicates    int     `json:"duplicates,omitempty"` // of the calls, those that repeat an earlier one of their trajectory
	Calls         int     `json:"calls"`
	CallErrors    int     `json:"call_errors"`
	CorrectCalls  int     `json:"correct_calls,omitempty"`       // of the calls, those of correct samples
	CorrectErrors int     `json:"correct_call_errors,omitempty"` // of these, errors
	Truncated     int     `json:"truncated"`
	Tokens        int64   `json:"tokens"`
	Correct       int     `json:"correct"`
	Reward        float64 `json:"reward"`

	Batch   train.Batch `json:"-"`
	timings Timings     // of the round, known only to the attempt that read it
}

// observe adds a group's samples to the round's figures.
func (b *batch) observe(g []agent.Trajectory) {
	for i := range g {
		c := countOne(&g[i])
		b.Samples++
		b.Calls += c.Calls
		b.CallErrors += c.CallErrors
		b.Truncated += c.Truncated
		b.Correct += c.Correct
		b.CorrectCalls += c.Correct * c.Calls
		b.CorrectErrors += c.Correct * c.CallErrors
		b.Tokens += c.Tokens
		b.Unknown += c.Unknown
		b.Duplicates += g[i].Counts().Duplicates
		b.timings.add(g[i].Timings, c.Calls)
	}
}

func (t *Timings) add(o agent.Timings, calls int) {
	t.Generate += o.Generate.Seconds()
	t.Tools += o.Tools.Seconds()
	t.Queue += o.Queue.Seconds()
	t.ToolCPU += o.CPU.Seconds()
	t.Verify += o.Verify.Seconds()
	t.Calls += calls
}

func (b *batch) finish() { b.Reward = share(b.Correct, b.Samples) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func (b batch) result(ref Ref) SelectResult {
	return SelectResult{
		Batch: ref, Sequences: len(b.Batch.Sequences), Groups: b.Groups, AllCorrect: b.AllCorrect, AllWrong: b.AllWrong, Reward: b.Reward,
		ToolErrorShare: share(b.CallErrors, b.Calls), TruncatedShare: share(b.Truncated, b.Samples), UnknownGroups: b.UnknownGroups, LostGroups: b.LostGroups,
	}
}

// metrics are the round's figures and its step's.
func (b batch) metrics(in TrainInput, m train.Metrics) StepMetrics {
	return StepMetrics{
		Stage: in.Stage, Iteration: in.Iteration, Step: in.Step,
		Loss: m.Loss, GradNorm: m.GradNorm, RatioMax: m.RatioMax, ClipLow: m.ClipFracLow, ClipHigh: m.ClipFracHigh, Entropy: m.Entropy,
		Tokens: int64(m.Tokens), Sequences: m.Sequences, Skipped: m.Skipped,
		Reward: b.Reward, ToolErrorShare: share(b.CallErrors, b.Calls), CallsPerSample: share(b.Calls, b.Samples),
		TruncatedShare: share(b.Truncated, b.Samples), ResponseTokens: float64(b.Tokens) / float64(max(b.Samples, 1)),
		AllCorrect: b.AllCorrect, AllWrong: b.AllWrong, Groups: b.Groups, UnknownGroups: b.UnknownGroups, LostGroups: b.LostGroups,
		UnknownShare: share(b.Unknown, b.Samples), DuplicateShare: share(b.Duplicates, b.Calls),
		CorrectCalls: b.CorrectCalls, CorrectErrors: b.CorrectErrors,
	}
}

func (b batch) encode() ([]byte, error) {
	head, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return train.AppendBatch(append(head, '\n'), b.Batch)
}

func decodeBatch(body []byte) (batch, error) {
	var b batch
	head, rest, ok := bytes.Cut(body, []byte{'\n'})
	if !ok {
		return b, fmt.Errorf("batch of %d bytes has no header line", len(body))
	}
	if err := decodeStrict(head, &b); err != nil {
		return b, fmt.Errorf("batch header: %w", err)
	}
	var err error
	b.Batch, err = train.DecodeBatch(rest)
	return b, err
}

// batch reads a recorded batch, checked against its digest.
func (t *Trainer) batch(ctx context.Context, ref Ref) (batch, error) {
	body, _, err := t.Store.Get(ctx, ref.Key)
	if err != nil {
		return batch{}, err
	}
	if got := digest(body); got != ref.Digest {
		return batch{}, fmt.Errorf("batch %s has digest %s, want %s", ref.Key, got, ref.Digest)
	}
	return decodeBatch(body)
}
