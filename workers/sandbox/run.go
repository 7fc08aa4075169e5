package sandbox

import (
	"context"
	"errors"
	"time"
)

// slotDeadline is how long a call that may run waits for a slot: restarts of zygotes with heavy libraries included.
const slotDeadline = startDeadline

// Run executes one call on a warm slot or one forked for it, waiting for its turn first; Result.Queue tells the wait apart. A call with limits of
// its own gets a slot forked for it. Cancelling ctx kills the call.
func (p *Pool) Run(ctx context.Context, c Call) (Result, error) {
	c.Limits = c.Limits.withDefaults(p.opt.Limits)
	if err := c.Limits.validate(); err != nil {
		return Result{}, err
	}
	asked := time.Now()
	if !p.enter() {
		return Result{}, ErrClosed
	}
	defer p.calls.Done()
	if err := p.turn(ctx); err != nil {
		return Result{}, err
	}
	defer p.leave()
	sl, err := p.slot(ctx, c)
	if err != nil {
		return Result{}, p.counted(Result{}, err)
	}
	queue := time.Since(asked)
	res, gone, err := execute(ctx, sl, c)
	if gone {
		p.seats.give(sl.seat)
	}
	res.Queue, res.Tier = queue, p.tier
	return res, p.counted(res, err)
}

// slot finds the call a process to run in.
func (p *Pool) slot(ctx context.Context, c Call) (*slot, error) {
	if p.opt.plain() {
		p.opt.Log.Warn("sandbox: INSECURE call", "call", c.ID)
		return p.subprocess(c.Limits, oneCall)
	}
	return p.shelfFor(c.Code).take(ctx, c.ID, c.Limits, oneCall)
}

// turn waits until the call or cell may run. The caller takes a value from p.running afterwards.
func (p *Pool) turn(ctx context.Context) error {
	p.count.queued.Add(1)
	defer p.count.queued.Add(-1)
	select {
	case p.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.life.Done():
		return ErrClosed
	}
}

// leave ends a turn.
func (p *Pool) leave() {
	<-p.running
	if p.spare() {
		for _, s := range p.shelves {
			s.wake()
		}
	}
}

// spare reports whether there is a core that no running call or cell needs, beside one for the service and its callers.
func (p *Pool) spare() bool { return len(p.running) < max(p.cores-1, 1) }

// enter counts a call or session that Close has to wait for, unless the pool is closed.
func (p *Pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.calls.Add(1)
	}
	return !p.closed
}

func (p *Pool) counted(r Result, err error) error {
	switch {
	case err == nil:
		p.count.end(r)
	case errors.Is(err, ErrInfrastructure):
		p.count.lost.Add(1)
	}
	return err
}
