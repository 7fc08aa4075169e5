package sandbox

import (
	"context"
	"errors"
	"time"
)

// slotDeadline is how long a call that may run waits for a slot: restarts of zygotes with heavy libraries included.
const slotDeadline = startDeadline

// Run executes one call on a warm slot, waiting for its turn first; Result.Queue tells the wait apart. A call with limits of
// its own gets a slot forked for it. Cancelling ctx kills the call.
func (p *Pool) Run(ctx context.Context, c Call) (Result, error) {
	c.Limits = c.Limits.withDefaults(p.opt.Limits)
	if err := c.Limits.validate(); err != nil {
		return Result{}, err
	}
	asked := time.Now()
	if err := p.admit(ctx); err != nil {
		return Result{}, err
	}
	defer p.leave()
	sl, err := p.slot(ctx, c)
	if err != nil {
		return Result{}, p.count(err)
	}
	queue := time.Since(asked)
	res, gone, err := execute(ctx, sl, c)
	if gone {
		p.seats.give(sl.seat)
	}
	res.Queue, res.Tier = queue, p.tier
	return res, p.count(err)
}

// admit waits for the call's turn.
func (p *Pool) admit(ctx context.Context) error {
	if !p.enter() {
		return ErrClosed
	}
	p.queued.Add(1)
	defer p.queued.Add(-1)
	select {
	case p.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		p.calls.Done()
		return ctx.Err()
	case <-p.life.Done():
		p.calls.Done()
		return ErrClosed
	}
}

// enter counts a call that Close has to wait for, unless the pool is closed.
func (p *Pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.calls.Add(1)
	}
	return !p.closed
}

func (p *Pool) leave() {
	<-p.running
	p.calls.Done()
}

func (p *Pool) count(err error) error {
	switch {
	case err == nil:
		p.ran.Add(1)
	case errors.Is(err, ErrInfrastructure):
		p.lost.Add(1)
	}
	return err
}

// slot takes a warm slot whose zygote lives, or forks one for limits that the warm ones do not have.
func (p *Pool) slot(ctx context.Context, c Call) (*slot, error) {
	limit := time.NewTimer(slotDeadline)
	defer limit.Stop()
	own := c.Limits.slotLimits()
	ready, again := p.ready, (<-chan time.Time)(nil)
	for {
		if own != p.opt.Limits.slotLimits() {
			if sl := p.forkAny(own); sl != nil {
				return sl, nil
			}
			ready, again = nil, time.After(sampleEvery)
		}
		select {
		case sl := <-ready:
			if sl.zygote.alive() {
				return sl, nil
			}
			p.discard(sl)
		case <-again:
		case <-limit.C:
			return nil, p.noSlot(c)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.life.Done():
			return nil, ErrClosed
		}
	}
}

func (p *Pool) noSlot(c Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return infrastructure("call %s: no slot within %v; last failure of a zygote: %v", c.ID, slotDeadline, p.lastErr)
}

// forkAny forks a slot from some living zygote, nil if none can.
func (p *Pool) forkAny(l Limits) *slot {
	p.mu.Lock()
	zygotes := append([]*zygote(nil), p.zygotes...)
	p.mu.Unlock()
	for i := range zygotes {
		z := zygotes[(i+int(p.ran.Load()))%len(zygotes)]
		if z == nil || !z.usable() {
			continue
		}
		if sl, err := p.fork(z, l); err == nil {
			return sl
		}
	}
	return nil
}
