// Package train applies optimizer steps: policy gradient and SFT, over packed sequences.
//
// Invariants:
//   - A step is a pure function of (weights, moments, counters, batch, objective, optimizer). The order in which the batch lists its
//     sequences, the micro-batch size and the number of workers change no bit.
//   - The batch is cut into 8 leaves by a pure function of the batch. Inside a leaf sums run over sequences in ordinal order; across
//     leaves they follow a fixed binary tree. That holds for gradients and for every reported sum.
//   - The loss has one denominator, taken over the whole batch before any cut.
//   - Step n is applied once, after step n-1. A step whose gradient is not finite is applied as "no change", which its metrics say.
package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/workers/model"
)

// ErrStepOrder is returned for a step that does not follow the state's last applied step. The state is unchanged: reload and replay.
var ErrStepOrder = errors.New("train: step out of order")

// Metrics are the deterministic figures of a step. Every float is finite. Means are over the batch's sampled (mask 1) tokens.
type Metrics struct {
	Loss         float64 `json:"loss"`           // the objective's loss, with its own denominator
	GradNorm     float64 `json:"grad_norm"`      // Euclidean, before clipping
	LearningRate float64 `json:"learning_rate"`  // of this step
	RatioMax     float64 `json:"ratio_max"`      // largest exp(|logp - behaviour logp|): exactly 1 on-policy
	KL           float64 `json:"kl"`             // mean of r-1-log r with r = policy/behaviour: 0 on-policy (Schulman's k3)
	RefKL        float64 `json:"ref_kl"`         // mean of the objective's KL estimate towards the reference; 0 without a KL weight
	ClipFracLow  float64 `json:"clip_frac_low"`  // share of tokens with a negative advantage and a ratio below 1-Clip.Low
	ClipFracHigh float64 `json:"clip_frac_high"` // share of tokens with a positive advantage and a ratio above 1+Clip.High
	ClipFracDual float64 `json:"clip_frac_dual"` // share of tokens with a negative advantage and a ratio above Clip.Dual
	Mismatch     float64 `json:"mismatch"`       // mean of r-1-log r with r = trainer/engine; 0 without importance weights
	MismatchMax  float64 `json:"mismatch_max"`   // largest exp(|log r|); 0 without importance weights
	Entropy      float64 `json:"entropy"`        // nats a token
	Tokens       int     `json:"tokens"`         // mask 1
	Sequences    int     `json:"sequences"`
	Skipped      string  `json:"skipped,omitempty"` // why no weight changed; empty if applied
}

// maxGradient bounds the gradient norm: the square of every element must fit float32, in which AdamW keeps it.
const maxGradient = 1e18

// Step applies step number step, which must be s.AppliedStep+1, to s. After an error s is unchanged, unless the error says that it is
// broken. Once the gradient is known the update no longer heeds ctx, so that it is never half done.
func Step(ctx context.Context, s *State, b Batch, step int64, obj Objective, opt Optimizer) (Metrics, error) {
	if s.broken != nil {
		return Metrics{}, s.broken
	}
	if step != s.AppliedStep+1 {
		return Metrics{}, fmt.Errorf("%w: asked for step %d, the state has applied %d and takes step %d", ErrStepOrder, step, s.AppliedStep, s.AppliedStep+1)
	}
	obj = obj.withDefaults()
	if err := errors.Join(obj.validate(), opt.validate()); err != nil {
		return Metrics{}, err
	}
	work, err := divide(b, obj)
	if err != nil {
		return Metrics{}, err
	}
	if s.ranks != nil {
		if err := s.announce(ctx, b, step, obj, opt); err != nil {
			return Metrics{}, err
		}
	}
	m, err := s.step(ctx, work, step, obj, opt)
	if err != nil && s.ranks != nil && s.broken == nil {
		return m, s.fail(fmt.Sprintf("computing step %d", step), err)
	}
	return m, err
}

// step is this process's part of a step that has been checked.
func (s *State) step(ctx context.Context, work [Leaves]leaf, step int64, obj Objective, opt Optimizer) (Metrics, error) {
	sequences := 0
	for _, l := range work {
		sequences += len(l)
	}
	total, err := s.reduce(ctx, work, obj)
	if err != nil {
		return Metrics{}, fmt.Errorf("train: gradient of step %d over %d sequences: %w", step, sequences, err)
	}
	defer s.scratch.put(total.gradient)
	gradient := total.gradient.Tensors()
	if err := total.gradient.Err(); err != nil {
		return Metrics{}, fmt.Errorf("train: gradient of step %d: %w", step, err)
	}
	norm, err := s.gradientNorm(ctx, gradient)
	if err != nil {
		return Metrics{}, fmt.Errorf("train: gradient norm of step %d: %w", step, err)
	}
	m := total.sums.metrics()
	m.Sequences, m.LearningRate = sequences, opt.rate(s.Updates+1)
	if m.Skipped = unusable(m.Loss, norm); m.Skipped == "" {
		m.GradNorm = norm
		if err := s.update(context.WithoutCancel(ctx), gradient, opt, opt.clip(norm)); err != nil {
			return Metrics{}, err
		}
	}
	s.AppliedStep = step
	return m.finite(), nil
}

// gradientNorm sums squares in float64, tensor after tensor.
func (s *State) gradientNorm(ctx context.Context, g []model.Tensor) (float64, error) {
	squares, err := s.squares(ctx, g)
	sum := 0.0
	for _, x := range squares {
		sum += x
	}
	return math.Sqrt(sum), err
}

func (s *State) squares(ctx context.Context, g []model.Tensor) ([]float64, error) {
	if s.ranks != nil {
		return s.ranks.squares(ctx, g)
	}
	return model.SumSquares(ctx, vectors(g)...)
}

func vectors(ts []model.Tensor) [][]float32 {
	out := make([][]float32, len(ts))
	for i, t := range ts {
		out[i] = t.Data
	}
	return out
}

// unusable says why a gradient must not reach the weights.
func unusable(loss, norm float64) string {
	switch {
	case !isFinite(loss):
		return fmt.Sprintf("loss is %v", loss)
	case !isFinite(norm):
		return fmt.Sprintf("gradient norm is %v", norm)
	case norm > maxGradient:
		return fmt.Sprintf("gradient norm %g exceeds %g", norm, float64(maxGradient))
	}
	return ""
}

// update applies AdamW to every tensor, or to those that this rank owns, which it then gives to the others.
func (s *State) update(ctx context.Context, g []model.Tensor, opt Optimizer, scale float64) error {
	at, params := opt.step(s.Updates+1, scale), s.Model.Params()
	for i, p := range params {
		if s.ranks != nil && !s.ranks.owns(i) {
			continue
		}
		if err := model.AdamW(ctx, p.Data, s.M[i].Data, s.V[i].Data, g[i].Data, at); err != nil {
			s.broken = fmt.Errorf("train: state is broken by a failed update of %s, load it again: %w", p.Name, err)
			return s.broken
		}
	}
	if s.ranks != nil {
		if err := s.ranks.group.AllGather(ctx, s.ranks.shards(of(s.Model.Tensors()))); err != nil {
			return s.fail("gathering the new weights", err)
		}
	}
	s.Updates++
	s.Model.WeightsChanged()
	return nil
}

// finite replaces what a skipped step could not measure by 0, so that every report can be written as JSON.
func (m Metrics) finite() Metrics {
	for _, v := range []*float64{&m.Loss, &m.GradNorm, &m.RatioMax, &m.KL, &m.RefKL, &m.Mismatch, &m.MismatchMax, &m.Entropy} {
		if !isFinite(*v) {
			*v = 0
		}
	}
	return m
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func (o Optimizer) step(update int64, scale float64) kernels.AdamWStep {
	return kernels.AdamWStep{
		LR: o.rate(update), Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.eps(), WeightDecay: o.WeightDecay, Step: update, Scale: scale,
	}
}
