package client

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
)

const (
	// outlier is how many infrastructure failures in a row put a node aside although it answers.
	outlier = 3
	// firstRest and longestRest bound how long a node that failed is left alone; it doubles while the node keeps failing.
	firstRest, longestRest = 250 * time.Millisecond, 4 * time.Second
)

// node is one sandbox service. It is guarded by the balancer's mutex.
type node struct {
	base        string
	outstanding int
	restUntil   time.Time
	failures    int // in a row, of its sandbox
	absences    int // in a row: it did not answer, or is draining
}

// balancer hands out nodes. Calls that find none free wait in the order in which they came.
type balancer struct {
	inFlight int
	patience time.Duration

	mu      sync.Mutex
	nodes   []*node
	waiters list.List // of *waiter
	silent  time.Time // since when no node has answered; zero while one does
	timer   *time.Timer
	wakeAt  time.Time
}

// waiter is a call that waits for a node.
type waiter struct {
	key   uint64
	avoid *node
	got   chan *node // nil: no node has answered for too long
}

func newBalancer(o Options) *balancer {
	b := &balancer{inFlight: o.InFlight, patience: o.Patience}
	for _, e := range o.Endpoints {
		b.nodes = append(b.nodes, &node{base: e})
	}
	return b
}

// acquire returns a node with room, waiting for one if need be. The caller gives it back with release.
func (b *balancer) acquire(ctx context.Context, key uint64, avoid *node) (*node, error) {
	b.mu.Lock()
	if b.waiters.Len() == 0 {
		if n := b.choose(key, avoid); n != nil {
			n.outstanding++
			b.mu.Unlock()
			return n, nil
		}
	}
	w := &waiter{key, avoid, make(chan *node, 1)}
	e := b.waiters.PushBack(w)
	b.pump()
	b.mu.Unlock()
	select {
	case n := <-w.got:
		if n == nil {
			return nil, fmt.Errorf("%w: no sandbox node has answered for %v, waited for one of %s", sandbox.ErrInfrastructure, b.patience, b.names())
		}
		return n, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters.Remove(e)
	select {
	case n := <-w.got:
		if n != nil {
			n.outstanding--
			b.pump()
		}
	default:
	}
	return nil, ctx.Err()
}

// pump serves waiting calls, first come first, and sees to it that it is called again when a resting node is due.
func (b *balancer) pump() {
	for e := b.waiters.Front(); e != nil; e = b.waiters.Front() {
		w := e.Value.(*waiter)
		n := b.choose(w.key, w.avoid)
		if n == nil {
			break
		}
		n.outstanding++
		b.waiters.Remove(e)
		w.got <- n
	}
	if b.waiters.Len() == 0 {
		return
	}
	now := time.Now()
	if !b.silent.IsZero() && now.Sub(b.silent) >= b.patience {
		for e := b.waiters.Front(); e != nil; e = b.waiters.Front() {
			b.waiters.Remove(e)
			e.Value.(*waiter).got <- nil
		}
		return
	}
	b.wake(now)
}

// wake sets the timer to the moment at which the next resting node is due.
func (b *balancer) wake(now time.Time) {
	var next time.Time
	for _, n := range b.nodes {
		if now.Before(n.restUntil) && (next.IsZero() || n.restUntil.Before(next)) {
			next = n.restUntil
		}
	}
	if next.IsZero() || next.Equal(b.wakeAt) {
		return
	}
	if b.timer != nil {
		b.timer.Stop()
	}
	b.wakeAt = next
	b.timer = time.AfterFunc(time.Until(next), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wakeAt = time.Time{}
		b.pump()
	})
}

// release gives a node back with what was seen of it.
func (b *balancer) release(n *node, a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n.outstanding--
	now := time.Now()
	switch a.kind {
	case completed, invalid, gone:
		n.failures, n.absences = 0, 0
	case failed:
		if n.failures++; n.failures >= outlier {
			n.rest(now, backOff(n.failures-outlier))
		}
	case busy:
		n.rest(now, a.after)
	case absent, lost:
		n.absences++
		n.rest(now, max(a.after, backOff(n.absences-1)))
	}
	if a.kind == absent || a.kind == lost {
		if b.silent.IsZero() {
			b.silent = now
		}
	} else if a.kind != abandoned {
		b.silent = time.Time{}
	}
	b.pump()
}

func (n *node) rest(now time.Time, d time.Duration) {
	if until := now.Add(d); until.After(n.restUntil) {
		n.restUntil = until
	}
}

func backOff(times int) time.Duration { return min(firstRest<<min(times, 10), longestRest) }

// outOfPatience reports whether no node has answered for too long.
func (b *balancer) outOfPatience() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.silent.IsZero() && time.Since(b.silent) >= b.patience
}

func (b *balancer) names() []string {
	var names []string
	for _, n := range b.nodes {
		names = append(names, n.base)
	}
	return names
}

// claim takes a node as it is.
func (b *balancer) claim(n *node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n.outstanding++
}
