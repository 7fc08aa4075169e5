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

// batch is what a step asks of the runner and gets from it; its memory is used again.
type batch struct {
	spans   []model.Span
	choices []model.Choice
	rows    []planned // those that want an id
	draws   []model.Draw
	top     int // the most alternatives that any of them wants
}

// step computes the planned ids and draws the next id of every sequence that is up to date.
func (s *scheduler) step(ctx context.Context, plan []planned) {
	b := &s.batch
	b.fill(plan)
	var err error
	if b.draws, err = s.runner.extend(ctx, b.spans, b.choices, b.top, b.draws[:0]); err != nil {
		if ctx.Err() != nil {
			return // the engine is closing, which fails every call
		}
		s.failAll(plan, fmt.Errorf("engine: step of %d sequences with weights %q: %w", len(plan), s.version, err))
		return
	}
	s.stats.Steps++
	s.advance(plan)
	for i, d := range b.draws {
		s.take(b.rows[i].seq, d)
	}
	s.trySwap()
}

// fill turns a plan into spans and choices.
func (b *batch) fill(plan []planned) {
	b.spans, b.choices, b.rows, b.top = b.spans[:0], b.choices[:0], b.rows[:0], 0
	for _, p := range plan {
		q := p.seq
		b.spans = append(b.spans, model.Span{
			IDs: q.ids[q.computed : q.computed+p.n], Start: q.computed,
			Blocks: q.blocks[:blocksFor(q.computed+p.n)], Want: p.last(),
		})
		if p.last() {
			b.rows = append(b.rows, p)
			b.choices = append(b.choices, q.call.choice())
			b.top = max(b.top, q.call.req.TopLogProbs)
		}
	}
}

// choice is how the call's next id is drawn.
func (c *call) choice() model.Choice {
	r := &c.req
	return model.Choice{Temperature: r.Temperature, TopK: r.TopK, TopP: r.TopP, Key: philox.NewKey(r.Seed), At: r.Address.WithToken(len(c.gen.IDs))}
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

// take appends a drawn id and finishes the call if it is the last.
func (s *scheduler) take(q *sequence, d model.Draw) {
	c := q.call
	if !d.Finite {
		s.end(q)
		c.fail(fmt.Errorf("%w: id %d after %d context ids with weights %q: logits are NaN, infinite or overflow", ErrNonFinite, len(c.gen.IDs), len(c.req.IDs), s.version))
		return
	}
	q.ids = append(q.ids, d.ID)
	c.gen.IDs = append(c.gen.IDs, d.ID)
	c.gen.LogProbs = append(c.gen.LogProbs, d.LogP)
	c.gen.Entropy = append(c.gen.Entropy, d.Entropy)
	if n := c.req.TopLogProbs; n > 0 {
		c.gen.TopLogProbs = append(c.gen.TopLogProbs, d.Top[:min(n, len(d.Top))])
	}
	s.stats.GeneratedTokens++
	c.tell(d)
	switch {
	case slices.Contains(c.req.Stop, d.ID):
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
