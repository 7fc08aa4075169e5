package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

// desk accepts calls, lets them wait their turn, runs them, and keeps what clients may ask for again.
type desk struct {
	opt    Options
	budget budget
	watch  *memoryWatch
	meters *meters
	life   context.Context // ends when the last running call has to end
	end    context.CancelCauseFunc
	runs   sync.WaitGroup

	mu       sync.Mutex
	queues   [classes]queue
	free     tokens
	running  int
	draining bool
	ledger   ledger
	pace     time.Duration // smoothed time a run token is held
}

// refusal says that a call was not accepted, and when to come again.
type refusal struct {
	cause string
	after time.Duration
}

func (r *refusal) Error() string { return r.cause }

func newDesk(o Options, m *meters) *desk {
	d := &desk{opt: o, meters: m, free: share(o.Running), watch: newMemoryWatch(o.memoryBytes, o.MinFree)}
	d.budget.limit = o.MaxBytes
	d.ledger = newLedger(o.KeepBytes, o.KeepFor, d.budget.give)
	d.life, d.end = context.WithCancelCause(context.Background())
	return d
}

// submit accepts a ticket, or joins the one with its key. The caller holds t.bytes of the budget; they belong to the ticket
// afterwards, or go back at once if the call was known. One waiter is counted: leave or collect ends it.
func (d *desk) submit(t *ticket) (known *ticket, joined bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, err := d.ledger.find(t.key, t.digest); err != nil || old != nil {
		d.budget.give(t.bytes)
		if err != nil {
			return nil, false, err
		}
		old.join()
		return old, true, nil
	}
	if err := d.refuse(t); err != nil {
		d.budget.give(t.bytes)
		return nil, false, err
	}
	t.ctx, t.cancel = context.WithCancelCause(context.WithoutCancel(t.ctx))
	t.begun, t.done, t.waiters = time.Now(), make(chan struct{}), 1
	d.ledger.open(t)
	d.queues[t.class].push(t)
	if !t.startBy.IsZero() {
		t.expiry = time.AfterFunc(time.Until(t.startBy), func() { d.withdraw(t, errLate) })
	}
	d.dispatch()
	return t, false, nil
}

// refuse says why a ticket cannot wait here.
func (d *desk) refuse(t *ticket) error {
	ahead := d.queues[t.class].size
	after := d.wait(ahead)
	switch {
	case d.draining:
		return &refusal{errDraining.Error(), time.Second}
	case d.queued() >= d.opt.MaxQueued:
		return &refusal{fmt.Sprintf("%d calls wait, the limit is %d", d.queued(), d.opt.MaxQueued), after}
	case !t.startBy.IsZero() && time.Until(t.startBy) < after:
		return &refusal{fmt.Sprintf("it would wait about %v, longer than its deadline allows", after.Round(time.Second)), after}
	}
	return nil
}

// wait estimates how long a call waits behind n others.
func (d *desk) wait(n int) time.Duration {
	return time.Duration(n) * d.pace / time.Duration(d.opt.Running)
}

func (d *desk) queued() int {
	n := 0
	for i := range d.queues {
		n += d.queues[i].size
	}
	return n
}

// dispatch starts waiting calls while there are tokens: long ones first, on the few tokens that are theirs.
func (d *desk) dispatch() {
	if d.draining {
		return
	}
	for c := classes - 1; c >= short; c-- {
		for d.queues[c].size > 0 {
			from, ok := d.free.take(c)
			if !ok {
				break
			}
			t := d.queues[c].pop()
			t.state = running
			d.running++
			if t.expiry != nil {
				t.expiry.Stop()
			}
			d.runs.Go(func() { d.run(t, from) })
		}
	}
}

// run executes a ticket and gives its token back.
func (d *desk) run(t *ticket, from class) {
	began := time.Now()
	o := d.execute(t, began.Sub(t.begun))
	d.mu.Lock()
	defer d.mu.Unlock()
	held := time.Since(began)
	if d.pace == 0 {
		d.pace = held
	}
	d.pace += (held - d.pace) / 16
	d.free[from]++
	d.running--
	d.finish(t, o)
	d.dispatch()
}

// finish ends a ticket and hands its result to the ledger, which keeps it if somebody may ask for it.
func (d *desk) finish(t *ticket, o outcome) {
	t.state, t.outcome = ended, o
	t.stopTimers()
	t.cancel(nil)
	t.call.Code, t.call.Stdin = "", ""
	d.budget.held.Add(o.size() - t.bytes)
	t.bytes = o.size()
	d.meters.ended(t)
	close(t.done)
	if t.waiters == 0 {
		d.ledger.settle(t)
	}
}

// withdraw ends a ticket that still waits.
func (d *desk) withdraw(t *ticket, why error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.withdrawLocked(t, why)
}

func (d *desk) withdrawLocked(t *ticket, why error) bool {
	if t.state != waiting {
		return false
	}
	d.queues[t.class].size--
	status := wire.Rejected
	if errors.Is(why, errCancelled) || errors.Is(why, errNobody) {
		status = wire.Cancelled
	}
	d.finish(t, outcome{status: status, reason: why.Error(), retry: again(why), queue: time.Since(t.begun)})
	return true
}

// cancel ends the call with an id, wherever it is. It reports whether there was one.
func (d *desk) cancel(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.ledger.calls[key]
	if t == nil || t.state == ended {
		return false
	}
	if !d.withdrawLocked(t, errCancelled) {
		t.cancel(errCancelled)
	}
	return true
}
