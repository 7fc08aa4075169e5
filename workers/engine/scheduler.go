package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/restar-rl/restar/workers/model"
)

// scheduler owns the sequences and the block pool. Its one goroutine alternates between serving messages, admitting waiting sequences
// and stepping the running ones.
type scheduler struct {
	engine  *Engine
	runner  runner
	version string
	root    key
	pool    *pool

	sessions map[string]*sequence
	waiting  []*sequence       // by age
	running  []*sequence       // by age
	claimed  map[key]*sequence // content that a running sequence is going to publish
	pending  *swap             // waits for the sequences with calls to end
	held     []*call           // posted after pending
	ages     uint64
	finished []*call // ended by the step under way, to be delivered with statistics that include them
	batch    batch
	stats    Stats
}

func newScheduler(e *Engine, r runner, version string) *scheduler {
	return &scheduler{
		engine: e, runner: r, version: version, root: rootKey(version), pool: newPool(e.opt.Blocks),
		sessions: map[string]*sequence{}, claimed: map[key]*sequence{},
	}
}

// loop runs until ctx ends and then fails every call.
func (s *scheduler) loop(ctx context.Context) {
	defer close(s.engine.done)
	for ctx.Err() == nil {
		s.serve()
		s.admit()
		plan := s.plan()
		s.publishStats()
		if len(plan) > 0 {
			s.step(ctx, plan)
			s.deliver()
			continue
		}
		select {
		case <-s.engine.wake:
		case <-ctx.Done():
		}
	}
	s.shutdown()
}

// serve takes the messages posted since the last step.
func (s *scheduler) serve() {
	for _, m := range s.takeInbox() {
		switch {
		case m.call != nil && s.pending != nil:
			s.held = append(s.held, m.call)
		case m.call != nil:
			s.accept(m.call)
		case m.cancel != nil:
			s.cancel(m.cancel)
		case m.release != nil:
			s.release(*m.release)
		case m.swap != nil:
			s.requestSwap(m.swap)
		}
	}
	s.trySwap()
}

func (s *scheduler) takeInbox() []message {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	inbox := s.engine.inbox
	s.engine.inbox = nil
	return inbox
}

func (s *scheduler) requestSwap(w *swap) {
	s.trySwap() // the one before may have been given up
	if s.pending != nil {
		w.refuse(fmt.Errorf("engine: swap to version %q refused: a swap to version %q is waiting", w.version, s.pending.version))
		return
	}
	s.pending = w
}

// accept turns a call into a waiting sequence, continuing its session's KV as far as the ids agree.
func (s *scheduler) accept(c *call) {
	if err := s.check(c.req); err != nil {
		c.fail(err)
		return
	}
	q := s.sessions[c.req.Session]
	if q != nil && q.call != nil {
		c.fail(fmt.Errorf("%w: session %q already generates a turn; end it or use another session", ErrBusy, c.req.Session))
		return
	}
	if q == nil {
		s.ages++
		q = &sequence{session: c.req.Session, age: s.ages}
		if q.session != "" {
			s.sessions[q.session] = q
		}
	}
	s.continueWith(q, c.req.IDs)
	c.gen, c.seq = Generation{Version: s.version}, q
	q.call = c
	s.enqueue(q)
}

// continueWith replaces a sequence's ids and drops the KV that no longer belongs to them, or to the last id, whose logits are needed.
func (s *scheduler) continueWith(q *sequence, ids []int32) {
	keep := min(commonPrefix(q.ids, ids), q.computed, len(ids)-1)
	same := commonPrefix(q.ids, ids) / model.BlockTokens
	q.chain = q.chain[:min(same, len(q.chain))]
	q.ids = slices.Clone(ids)
	if keep < q.computed {
		s.truncate(q, keep)
	}
}

// truncate drops KV after the first keep ids. The block that is left unfilled is made the sequence's own, or dropped as a whole.
func (s *scheduler) truncate(q *sequence, keep int) {
	n := blocksFor(keep)
	s.pool.unrefAll(q.blocks[n:])
	q.blocks, q.computed = q.blocks[:n], keep
	if keep%model.BlockTokens == 0 {
		return
	}
	last := q.blocks[n-1]
	if s.pool.refs[last] == 1 {
		s.pool.forget(last)
		return
	}
	s.pool.unref(last)
	q.blocks, q.computed = q.blocks[:n-1], (n-1)*model.BlockTokens
	if own, ok := s.pool.take(); ok {
		s.runner.copyBlock(own, last)
		q.blocks, q.computed = append(q.blocks, own), keep
	}
}

// cancel ends a call whose caller has left.
func (s *scheduler) cancel(c *call) {
	if i := slices.Index(s.held, c); i >= 0 {
		s.held = slices.Delete(s.held, i, i+1)
		return
	}
	if c.seq != nil {
		s.end(c.seq)
		s.trySwap()
	}
}

// release forgets a session; if it generates, it becomes a sequence that keeps nothing.
func (s *scheduler) release(session string) {
	q := s.sessions[session]
	if q == nil {
		return
	}
	delete(s.sessions, session)
	q.session = ""
	if q.call == nil {
		s.drop(q)
	}
}

// drop releases a sequence's blocks. What others may ask for stays findable until the space is needed.
func (s *scheduler) drop(q *sequence) {
	s.unclaim(q)
	s.pool.unrefAll(q.blocks)
	q.blocks, q.computed = nil, 0
}

// end takes a sequence out of the queues after its call; its session keeps the KV.
func (s *scheduler) end(q *sequence) {
	s.leave(q)
	q.state = idle
	q.call.seq = nil
	q.call = nil
	s.unclaim(q)
	if q.session == "" {
		s.drop(q)
	}
}

func (s *scheduler) leave(q *sequence) {
	switch q.state {
	case waiting:
		s.waiting = slices.DeleteFunc(s.waiting, func(o *sequence) bool { return o == q })
	case running:
		s.running = slices.DeleteFunc(s.running, func(o *sequence) bool { return o == q })
	}
}

func (s *scheduler) enqueue(q *sequence) {
	q.state = waiting
	s.waiting = insertByAge(s.waiting, q)
}

func insertByAge(list []*sequence, q *sequence) []*sequence {
	i, _ := slices.BinarySearchFunc(list, q.age, func(o *sequence, age uint64) int {
		return int(int64(o.age) - int64(age))
	})
	return slices.Insert(list, i, q)
}

// trySwap carries out the pending swap once no call is left, and then serves the calls held back.
func (s *scheduler) trySwap() {
	w := s.pending
	if w == nil {
		return
	}
	abandoned := w.settled.Load()
	if !abandoned && len(s.waiting)+len(s.running) > 0 {
		return
	}
	if !abandoned && w.settle() {
		s.replace(w)
		w.done <- nil
	}
	held := s.held
	s.pending, s.held = nil, nil
	for _, c := range held {
		s.accept(c)
	}
}

// replace installs new weights and forgets every KV computed with the old ones.
func (s *scheduler) replace(w *swap) {
	for _, q := range s.sessions {
		q.blocks, q.computed, q.chain = nil, 0, nil
	}
	s.runner, s.version, s.root = w.next(s.runner), w.version, rootKey(w.version)
	s.pool = newPool(s.engine.opt.Blocks)
}

// deliver hands over the generations that the step finished.
func (s *scheduler) deliver() {
	s.publishStats()
	for _, c := range s.finished {
		c.result <- outcome{gen: c.gen}
	}
	s.finished = nil
}

// shutdown fails whoever still waits.
func (s *scheduler) shutdown() {
	for _, m := range s.takeInbox() {
		if m.call != nil {
			m.call.fail(ErrClosed)
		}
		if m.swap != nil {
			m.swap.refuse(ErrClosed)
		}
	}
	for _, q := range append(slices.Clone(s.running), s.waiting...) {
		q.call.fail(ErrClosed)
	}
	for _, c := range s.held {
		c.fail(ErrClosed)
	}
	if s.pending != nil {
		s.pending.refuse(ErrClosed)
	}
}

func (s *scheduler) publishStats() {
	st := s.stats
	st.Running, st.Waiting, st.Sessions = len(s.running), len(s.waiting)+len(s.held), len(s.sessions)
	st.FreeBlocks, st.TotalBlocks, st.Version = s.pool.available(), s.engine.opt.Blocks, s.version
	for _, q := range s.sessions {
		if q.state != running {
			st.IdleBlocks += len(q.blocks)
		}
	}
	s.engine.mu.Lock()
	s.engine.stats = st
	s.engine.mu.Unlock()
}
