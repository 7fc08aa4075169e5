package sandbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Pool runs calls on warm slots of a few zygotes. It is safe for any number of concurrent callers: at most
// Options.MaxRunning run, the others wait their turn. A zygote that dies is replaced.
type Pool struct {
	opt     Options
	tier    Tier
	reason  string // why the tier is not A
	filter  []byte
	seats   *seats
	running chan struct{} // one value for each running call
	ready   chan *slot
	life    context.Context // ends with Close
	end     context.CancelFunc
	keepers sync.WaitGroup
	calls   sync.WaitGroup
	once    sync.Once

	mu      sync.Mutex
	closed  bool
	zygotes []*zygote // nil while one is being started
	lastErr error     // why the latest start of a zygote failed

	queued, ran, lost, restarts atomic.Int64
}

var _ Runner = (*Pool)(nil)

// Start starts a pool, runs the preflight canaries inside one of its slots, and fails closed: when the required tier does
// not hold the error names each missing layer and what would give it.
func Start(ctx context.Context, opt Options) (*Pool, error) {
	opt, err := opt.resolve()
	if err != nil {
		return nil, err
	}
	p, err := open(opt)
	if err != nil {
		return nil, err
	}
	if err := p.launch(ctx); err != nil {
		p.Close()
		return nil, err
	}
	report, err := p.preflight(ctx)
	if err == nil {
		err = report.refusal()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// open finds the tier and makes what the zygotes share.
func open(opt Options) (*Pool, error) {
	f, err := filter()
	if err != nil {
		return nil, err
	}
	p := &Pool{opt: opt, tier: TierA, filter: f, seats: &seats{}, running: make(chan struct{}, opt.MaxRunning),
		ready: make(chan *slot, opt.Warm), zygotes: make([]*zygote, opt.Zygotes)}
	p.life, p.end = context.WithCancel(context.Background())
	err = errors.New("left out")
	if !opt.without.cgroup {
		p.seats.cgroups, err = openCgroups()
	}
	if err == nil {
		return p, nil
	}
	if opt.Tier == TierA {
		return nil, infrastructure("tier A needs memory and pids cgroups: %w; or accept tier B", err)
	}
	p.tier, p.reason, p.seats.cgroups = TierB, err.Error(), nil
	return p, nil
}

// launch starts every zygote once, together, and hands them to their keepers.
func (p *Pool) launch(ctx context.Context) error {
	errs := make([]error, len(p.zygotes))
	var started sync.WaitGroup
	for i := range p.zygotes {
		started.Go(func() { p.zygotes[i], errs[i] = startZygote(ctx, p.opt, p.filter) })
	}
	started.Wait()
	for i := range p.zygotes {
		if p.zygotes[i] != nil {
			p.keepers.Go(func() { p.keep(i) })
		}
	}
	return errors.Join(errs...)
}

// keep fills the pool from zygote i, and replaces it when it dies.
func (p *Pool) keep(i int) {
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	pause := first
	for z := p.zygote(i); ; {
		if z != nil {
			p.fill(z)
			p.setZygote(i, nil, nil)
			z.stop()
			pause = first
		}
		select {
		case <-p.life.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
		p.restarts.Add(1)
		var err error
		z, err = startZygote(p.life, p.opt, p.filter)
		p.setZygote(i, z, err)
		if err != nil {
			p.opt.Log.Error("sandbox: zygote does not start", "error", err, "retry_in", pause)
		}
	}
}

func (p *Pool) zygote(i int) *zygote {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.zygotes[i]
}

func (p *Pool) setZygote(i int, z *zygote, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.zygotes[i] = z
	if z != nil || err != nil {
		p.lastErr = err
	}
}

// fill forks slots ahead until the zygote fails or the pool closes. What fails without the zygote (descriptors, memory,
// cgroups) is tried again, for the sake of the calls that run on it.
func (p *Pool) fill(z *zygote) {
	const pause = 100 * time.Millisecond
	for {
		sl, err := p.fork(z, p.opt.Limits.slotLimits())
		ready, again := p.ready, (<-chan time.Time)(nil)
		if err != nil {
			p.opt.Log.Error("sandbox: no slot", "error", err)
			if !z.usable() {
				return
			}
			ready, again = nil, time.After(pause)
		}
		select {
		case ready <- sl:
			continue
		case <-again:
			continue
		case <-z.dead:
		case <-p.life.Done():
		}
		if sl != nil {
			p.discard(sl)
		}
		return
	}
}

func (p *Pool) fork(z *zygote, l Limits) (*slot, error) {
	seat, err := p.seats.take()
	if err != nil {
		return nil, err
	}
	sl, err := z.spawn(seat, l)
	if err != nil {
		p.seats.give(seat)
	}
	return sl, err
}

// discard ends an unused slot.
func (p *Pool) discard(sl *slot) {
	sl.kill()
	if sl.awaitGone(teardownDeadline) {
		p.seats.give(sl.seat)
	}
	sl.close()
}

// Close ends every zygote and running call and removes the pool's cgroups. Calls that were running return errors.
func (p *Pool) Close() {
	p.once.Do(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.end()
		p.keepers.Wait()
		for _, z := range p.zygotes {
			if z != nil {
				z.stop()
			}
		}
		for len(p.ready) > 0 {
			p.discard(<-p.ready)
		}
		p.calls.Wait()
		p.seats.close()
	})
}

// PoolStatus is a pool's state at one moment.
type PoolStatus struct {
	Tier     Tier
	Reason   string // why the tier is not A, "" in tier A
	Zygotes  int    // alive
	Ready    int    // slots waiting for a call
	Running  int
	Queued   int
	Calls    int64 // ended with a Result
	Lost     int64 // ended with an infrastructure error
	Restarts int64 // zygotes started again
}

// Status returns the pool's state.
func (p *Pool) Status() PoolStatus {
	s := PoolStatus{Tier: p.tier, Reason: p.reason, Ready: len(p.ready), Running: len(p.running), Queued: int(p.queued.Load()),
		Calls: p.ran.Load(), Lost: p.lost.Load(), Restarts: p.restarts.Load()}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, z := range p.zygotes {
		if z != nil && z.alive() {
			s.Zygotes++
		}
	}
	return s
}
