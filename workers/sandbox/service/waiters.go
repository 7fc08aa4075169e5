package service

import (
	"context"
	"time"
)

// await waits for a ticket's end and counts the caller out. Without an end before ctx's, the ticket is left to others.
func (d *desk) await(ctx context.Context, t *ticket) (outcome, bool) {
	select {
	case <-t.done:
	default:
		select {
		case <-t.done:
		case <-ctx.Done():
			d.leave(t)
			return outcome{}, false
		}
	}
	o := t.outcome
	d.collect(t)
	return o, true
}

// collect counts out a waiter who has the result.
func (d *desk) collect(t *ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.waiters--; t.waiters == 0 {
		d.ledger.settle(t)
	}
}

// leave counts out a waiter who goes without the result. The last one's ticket is cancelled after the grace period.
func (d *desk) leave(t *ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.waiters--
	switch {
	case t.waiters > 0:
	case t.state == ended:
		d.ledger.settle(t)
	default:
		t.grace = time.AfterFunc(d.opt.Grace, func() { d.abandon(t) })
	}
}

// orphan counts out a waiter who goes without the result, and keeps the call for whoever asks for the same: a running or
// ended call is found by its digest, a waiting one is withdrawn.
func (d *desk) orphan(t *ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.waiters--
	if t.waiters > 0 {
		return
	}
	if t.state != waiting && t.key == "" {
		d.ledger.orphan(t)
	}
	if t.state == ended {
		d.ledger.settle(t)
	}
	d.withdrawLocked(t, errNobody)
}

// adopt takes over a call that was left by its client, if there is one.
func (d *desk) adopt(g digest) *ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.ledger.adopt(g)
	if t != nil {
		t.join()
	}
	return t
}

func (d *desk) abandon(t *ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.waiters == 0 && !d.withdrawLocked(t, errNobody) && t.state == running {
		t.cancel(errNobody)
	}
}

// join counts in another waiter.
func (t *ticket) join() {
	t.waiters++
	if t.grace != nil {
		t.grace.Stop()
		t.grace = nil
	}
}

func (t *ticket) stopTimers() {
	for _, timer := range []*time.Timer{t.grace, t.expiry} {
		if timer != nil {
			timer.Stop()
		}
	}
	t.grace, t.expiry = nil, nil
}
