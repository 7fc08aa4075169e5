package engine

import "github.com/restar-rl/restar/workers/model"

// match is what the cache holds of a waiting sequence's context.
type match struct {
	blocks []int // whole blocks that follow those the sequence has
	tail   int   // block to copy the ids after them from, -1 if none
	ids    int   // ids whose KV is then present
	busy   bool  // the next piece is being computed by a running sequence: wait rather than compute it twice
}

// lookup finds what can be shared. A sequence whose own KV ends inside a block has no use for the rest of that block.
func (s *scheduler) lookup(q *sequence) match {
	m := match{tail: -1, ids: q.computed}
	if q.computed%model.BlockTokens != 0 {
		return m
	}
	full, n := q.shareable()
	for i := q.computed / model.BlockTokens; i < full; i++ {
		k := q.blockKey(i, s.root)
		b, ok := s.pool.find(k)
		if !ok {
			m.busy = s.claimed[k] != nil
			return m
		}
		m.blocks, m.ids = append(m.blocks, b), (i+1)*model.BlockTokens
	}
	if k, ok := q.tailKey(s.root); ok && m.ids == full*model.BlockTokens {
		if b, found := s.pool.find(k); found {
			m.tail, m.ids = b, n
		}
		m.busy = m.tail < 0 && s.claimed[k] != nil
	}
	return m
}

// admit moves waiting sequences to the running ones, the oldest first, while rows and blocks last. A sequence whose prefix another is
// computing lets later ones pass; one that lacks blocks does not, or it would wait for ever behind smaller ones.
func (s *scheduler) admit() {
	for i := 0; i < len(s.waiting) && len(s.running) < s.engine.opt.MaxRows; {
		q := s.waiting[i]
		m := s.lookup(q)
		if m.busy {
			i++
			continue
		}
		if !s.makeRoom(q, m) {
			return
		}
		s.attach(q, m)
		s.claim(q)
		s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
		q.state = running
		s.running = insertByAge(s.running, q)
	}
}

// makeRoom reports whether q's context fits, taking blocks from younger sequences that do not run, or from any of those if nothing runs.
func (s *scheduler) makeRoom(q *sequence, m match) bool {
	need := blocksFor(len(q.ids)) - len(q.blocks) - len(m.blocks)
	for _, b := range m.blocks {
		if s.pool.refs[b] == 0 {
			need++ // found, but counted as available until it is referenced
		}
	}
	// A quarter of a block for each running sequence lets all of them grow by 16 ids before one has to give way.
	need += len(s.running) / 4
	for s.pool.available() < need {
		v := s.youngest(func(v *sequence) bool {
			return v != q && (v.age > q.age || len(s.running) == 0)
		})
		if v == nil {
			return false
		}
		s.evict(v)
	}
	return true
}

// attach gives q what the cache holds of its context.
func (s *scheduler) attach(q *sequence, m match) {
	for _, b := range m.blocks {
		s.pool.ref(b)
		q.blocks = append(q.blocks, b)
	}
	before := q.computed
	q.computed += len(m.blocks) * model.BlockTokens
	if m.tail >= 0 {
		s.pool.ref(m.tail) // so that taking a block cannot take this one
		if own, ok := s.pool.take(); ok {
			s.runner.copyBlock(own, m.tail)
			q.blocks = append(q.blocks, own)
			q.computed = m.ids
		}
		s.pool.unref(m.tail)
	}
	s.stats.CachedTokens += int64(q.computed - before)
}

// claim announces what q is going to publish, so that others wait for it.
func (s *scheduler) claim(q *sequence) {
	full, _ := q.shareable()
	for i := q.computed / model.BlockTokens; i < full; i++ {
		s.claimKey(q, q.blockKey(i, s.root))
	}
	if k, ok := q.tailKey(s.root); ok && q.call.req.Group != "" && q.computed < len(q.ids)-1 {
		s.claimKey(q, k)
	}
}

func (s *scheduler) claimKey(q *sequence, k key) {
	if s.claimed[k] == nil {
		s.claimed[k] = q
		q.claims = append(q.claims, k)
	}
}

func (s *scheduler) unclaim(q *sequence) {
	for _, k := range q.claims {
		delete(s.claimed, k)
	}
	q.claims = nil
}

// youngest returns the youngest sequence that holds blocks, does not run and satisfies ok, or nil.
func (s *scheduler) youngest(ok func(*sequence) bool) *sequence {
	var found *sequence
	consider := func(v *sequence) {
		if v.state != running && len(v.blocks) > 0 && ok(v) && (found == nil || v.age > found.age) {
			found = v
		}
	}
	for _, v := range s.sessions {
		consider(v)
	}
	for _, v := range s.waiting {
		consider(v)
	}
	return found
}

// evict takes the blocks of a sequence that does not run; its next turn computes them again.
func (s *scheduler) evict(v *sequence) {
	s.stats.Evictions++
	s.drop(v)
}

// grow gives q blocks for its first n ids. It takes them from sequences that do not run, then from the youngest that runs. False means
// that q itself was the youngest and is waiting again.
func (s *scheduler) grow(q *sequence, n int) bool {
	for len(q.blocks) < blocksFor(n) {
		if b, ok := s.pool.take(); ok {
			q.blocks = append(q.blocks, b)
			continue
		}
		if v := s.youngest(func(*sequence) bool { return true }); v != nil {
			s.evict(v)
			continue
		}
		v := s.running[len(s.running)-1]
		s.preempt(v)
		if v == q {
			return false
		}
	}
	return true
}

// preempt sends a running sequence back to the queue without blocks. The ids it has generated stay.
func (s *scheduler) preempt(v *sequence) {
	s.stats.Preemptions++
	s.leave(v)
	s.drop(v)
	s.enqueue(v)
}
