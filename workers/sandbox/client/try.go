package client

import (
	"context"
	"fmt"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

// firstPause is before the second send of a call; it doubles, and differs from call to call by half of it.
const firstPause = 50 * time.Millisecond

// try is one Run.
type try struct {
	*Client
	call     sandbox.Call
	key      string
	began    time.Time
	next     *node // acquired for the first send
	attempts int   // sends that may have reached a sandbox
	avoid    *node
	lost     *node // has or had the call, and its answer did not arrive
}

// run sends the call until it has ended, is refused for good, or may not be sent again.
func (t *try) run(ctx context.Context) (sandbox.Result, error) {
	hash := hashOf(t.key)
	for {
		a, err := t.once(ctx, hash)
		if err != nil {
			return sandbox.Result{}, err
		}
		switch a.kind {
		case completed:
			t.budget.earn()
			r := resultOf(a.result)
			r.Queue = max(time.Since(t.began)-r.Wall, r.Queue) // waiting here and on the way counts as waiting
			return r, nil
		case invalid, gone:
			return sandbox.Result{}, fmt.Errorf("sandbox call %s: %w", t.call.ID, a.err)
		case abandoned:
			return sandbox.Result{}, ctx.Err()
		case busy, absent:
			if a.kind == absent && t.nodes.outOfPatience() {
				return sandbox.Result{}, t.giveUp(a.err)
			}
			continue
		}
		t.attempts++
		t.opt.Log.Warn("sandbox: a node failed a call", "call", t.call.ID, "attempt", t.attempts, "error", a.err)
		if t.attempts >= t.opt.Attempts {
			return sandbox.Result{}, t.giveUp(a.err)
		}
		if !t.budget.spend() {
			return sandbox.Result{}, t.giveUp(fmt.Errorf("the budget for retries is spent: %w", a.err))
		}
		if err := t.pause(ctx, hash); err != nil {
			return sandbox.Result{}, err
		}
	}
}

// once sends the call to one node. A node that may hold the call's result is asked again first, whatever its load.
func (t *try) once(ctx context.Context, hash uint64) (answer, error) {
	n, again, err := t.target(ctx, hash)
	if err != nil {
		return answer{}, err
	}
	body, err := t.request(ctx, t.call, t.key)
	if err != nil {
		t.nodes.release(n, answer{kind: abandoned})
		return answer{}, fmt.Errorf("sandbox call %s: %w", t.call.ID, err)
	}
	a := t.send(ctx, n, wire.ExecutePath, t.key, body)
	t.nodes.release(n, a)
	switch a.kind {
	case lost:
		t.lost, t.avoid = n, n
	case failed, absent:
		t.avoid = n
	case busy:
		if again { // it has no room to say what became of the call: another node would run it a second time
			t.lost = n
			err = sleep(ctx, max(a.after, firstPause))
		}
	}
	return a, err
}

// target is the node to send to, counted as busier by one, and whether it may have the call already.
func (t *try) target(ctx context.Context, hash uint64) (n *node, again bool, err error) {
	first, lost := t.next, t.lost
	t.next, t.lost = nil, nil
	switch {
	case first != nil:
		return first, false, nil
	case lost != nil:
		t.nodes.claim(lost)
		return lost, true, nil
	}
	n, err = t.nodes.acquire(ctx, hash, t.avoid)
	return n, false, err
}

func (t *try) pause(ctx context.Context, hash uint64) error {
	d := firstPause << min(t.attempts-1, 6)
	spread := time.Duration(hash>>(8*uint(t.attempts%8))&0xff) * d / 256
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d/2 + spread):
		return nil
	}
}

func (t *try) giveUp(err error) error {
	return fmt.Errorf("%w: call %s, after %d attempts: %w", sandbox.ErrInfrastructure, t.call.ID, t.attempts, err)
}
