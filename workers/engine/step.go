package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
)

// planned is one sequence's part of a step: the KV of its next n ids.
type planned struct {
	seq *sequence
	n   int
}

func (p planned) last() bool { return p.seq.computed+p.n == len(p.seq.ids) }

// plan chooses the step's work, the oldest sequence first: one id for each that decodes, a chunk for each that prefills while the budget
// lasts. A sequence preempted on the way is younger than all those planned.
func (s *scheduler) plan() []planned {
	budget := s.engine.opt.MaxPrefillTokens
	var plan []planned
	for i := 0; i < len(s.running); i++ {
		q := s.running[i]
		n := len(q.ids) - q.computed
		if n > 1 {
			n = min(n, budget)
			budget -= n
		}
		if n == 0 {
			continue
		}
		if !s.grow(q, q.computed+n) {
			break
		}
		plan = append(plan, planned{q, n})
	}
	return plan
}

// step computes the planned ids and samples the next id of every sequence that is up to date.
func (s *scheduler) step(ctx context.Context, plan []planned) {
	logits, err := s.runner.extend(ctx, spans(plan))
	if err != nil {
		if ctx.Err() != nil {
			return // the engine is closing, which fails every call
		}
		s.failAll(plan, fmt.Errorf("engine: step of %d sequences with weights %q: %w", len(plan), s.version, err))
		return
	}
	s.stats.Steps++
	s.advance(plan)
	rows := slices.DeleteFunc(slices.Clone(plan), func(p planned) bool { return p.seq.computed < len(p.seq.ids) })
	for i, d := range s.sample(rows, logits) {
		s.take(rows[i].seq, d)
	}
	s.trySwap()
}

func spans(plan []planned) []model.Span {
	out := make([]model.Span, len(plan))
	for i, p := range plan {
		q := p.seq
		out[i] = model.Span{
			IDs: q.ids[q.computed : q.computed+p.n], Start: q.computed,
			Blocks: q.blocks[:blocksFor(q.computed+p.n)], Want: p.last(),
		}
	}
	return out
}

// advance records the KV that the step computed and publishes what has become shareable.
func (s *scheduler) advance(plan []planned) {
	for _, p := range plan {
		q := p.seq
		from := q.computed / model.BlockTokens
		q.computed += p.n
		if p.n > 1 || len(q.call.gen.IDs) == 0 {
			s.stats.PrefillTokens += int64(p.n)
		}
		for i := from; i < q.computed/model.BlockTokens; i++ {
			s.pool.publish(q.blockKey(i, s.root), q.blocks[i])
		}
		if q.computed == len(q.ids) && len(q.claims) > 0 {
			s.publishTail(q)
			s.unclaim(q)
		}
	}
}

// publishTail lets the rest of q's group copy the prompt's last block: its first slots never change while q only appends.
func (s *scheduler) publishTail(q *sequence) {
	if k, ok := q.tailKey(s.root); ok && q.call.req.Group != "" {
		full, _ := q.shareable()
		s.pool.publish(k, q.blocks[full])
	}
}

// sample draws one id for each row of logits. Rows are independent, so they are drawn in parallel.
func (s *scheduler) sample(rows []planned, logits []float32) []draw {
	vocab := s.runner.vocab()
	draws := make([]draw, len(rows))
	parallel(len(rows), func(i int) {
		c := rows[i].seq.call
		at := c.req.Address.WithToken(len(c.gen.IDs))
		draws[i] = drawToken(logits[i*vocab:(i+1)*vocab], c.req.Temperature, philox.NewKey(c.req.Seed).Uniform(at))
	})
	return draws
}

// take appends a drawn id and finishes the call if it is the last.
func (s *scheduler) take(q *sequence, d draw) {
	c := q.call
	if !d.finite {
		s.end(q)
		c.fail(fmt.Errorf("%w: id %d after %d context ids with weights %q: logits are NaN, infinite or overflow", ErrNonFinite, len(c.gen.IDs), len(c.req.IDs), s.version))
		return
	}
	q.ids = append(q.ids, d.id)
	c.gen.IDs = append(c.gen.IDs, d.id)
	c.gen.LogProbs = append(c.gen.LogProbs, d.logp)
	c.gen.Entropy = append(c.gen.Entropy, d.entropy)
	s.stats.GeneratedTokens++
	switch {
	case slices.Contains(c.req.Stop, d.id):
		c.gen.Finish = FinishStop
	case len(c.gen.IDs) == c.req.MaxNew:
		c.gen.Finish = FinishLength
	default:
		return
	}
	s.end(q)
	s.finished = append(s.finished, c)
}

// failAll ends the planned calls after an error of the runner. Their KV may be half written, so it is dropped.
func (s *scheduler) failAll(plan []planned, err error) {
	for _, p := range plan {
		c := p.seq.call
		s.end(p.seq)
		s.drop(p.seq)
		c.fail(err)
	}
	s.trySwap()
}
