package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// shelf is the zygotes of one profile and the slots forked ahead from them.
type shelf struct {
	pool    *Pool
	profile profile
	ready   chan *slot

	mu      sync.Mutex
	zygotes []*zygote // nil while one is being started
	lastErr error     // why the latest start of a zygote failed
}

func newShelf(p *Pool, kind profile) *shelf {
	return &shelf{pool: p, profile: kind, ready: make(chan *slot, p.opt.Warm), zygotes: make([]*zygote, p.opt.Zygotes)}
}

// launch starts every zygote once, together, tries the layers inside each, and hands them to their keepers.
func (s *shelf) launch(ctx context.Context) error {
	errs := make([]error, len(s.zygotes))
	var started sync.WaitGroup
	for i := range s.zygotes {
		started.Go(func() { s.zygotes[i], errs[i] = s.start(ctx) })
	}
	started.Wait()
	for i := range s.zygotes {
		if s.zygotes[i] != nil {
			s.pool.keepers.Go(func() { s.keep(i) })
		}
	}
	return errors.Join(errs...)
}

// start returns a zygote inside which every layer holds.
func (s *shelf) start(ctx context.Context) (*zygote, error) {
	z, err := startZygote(ctx, s.pool.opt, s.profile, s.pool.filter)
	if err != nil {
		return nil, err
	}
	if err := s.pool.admitted(ctx, z); err != nil {
		z.stop()
		return nil, err
	}
	return z, nil
}

// keep fills the shelf from zygote i, and replaces it when it dies.
func (s *shelf) keep(i int) {
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	pause := first
	for z := s.zygote(i); ; {
		if z != nil {
			s.fill(z)
			s.set(i, nil, nil)
			z.stop()
			pause = first
		}
		select {
		case <-s.pool.life.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
		s.pool.count.restarts.Add(1)
		var err error
		z, err = s.start(s.pool.life)
		s.set(i, z, err)
		if err != nil && s.pool.life.Err() == nil {
			s.pool.opt.Log.Error("sandbox: zygote does not start", "profile", s.profile.name, "error", err, "retry_in", pause)
		}
	}
}

func (s *shelf) zygote(i int) *zygote {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.zygotes[i]
}

// living are the zygotes that are there at this moment.
func (s *shelf) living() (list []*zygote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, z := range s.zygotes {
		if z != nil && z.alive() {
			list = append(list, z)
		}
	}
	return list
}

func (s *shelf) set(i int, z *zygote, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zygotes[i] = z
	if z != nil || err != nil {
		s.lastErr = err
	}
}

func (s *shelf) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastErr
}

// fill forks slots ahead until the zygote fails or the pool closes. What fails without the zygote (descriptors, memory,
// cgroups) is tried again, for the sake of the calls that run on it.
func (s *shelf) fill(z *zygote) {
	const pause = 100 * time.Millisecond
	for {
		sl, err := s.pool.fork(z, s.pool.opt.Limits.slotLimits(), oneCall)
		ready, again := s.ready, (<-chan time.Time)(nil)
		if err != nil {
			s.pool.opt.Log.Error("sandbox: no slot", "profile", s.profile.name, "error", err)
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
		case <-s.pool.life.Done():
		}
		if sl != nil {
			s.pool.discard(sl)
		}
		return
	}
}

// take returns a warm slot whose zygote lives, or one forked for limits that the warm ones do not have.
func (s *shelf) take(ctx context.Context, id string, l Limits, use purpose) (*slot, error) {
	limit := time.NewTimer(slotDeadline)
	defer limit.Stop()
	own := l.slotLimits()
	ready, again := s.ready, (<-chan time.Time)(nil)
	for {
		if use != oneCall || own != s.pool.opt.Limits.slotLimits() {
			if sl := s.forkAny(own, use); sl != nil {
				return sl, nil
			}
			ready, again = nil, time.After(sampleEvery)
		}
		select {
		case sl := <-ready:
			if sl.zygote.alive() {
				return sl, nil
			}
			s.pool.discard(sl)
		case <-again:
		case <-limit.C:
			return nil, infrastructure("call %s: no slot within %v; last failure of a zygote: %v", id, slotDeadline, s.failure())
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.pool.life.Done():
			return nil, ErrClosed
		}
	}
}

// forkAny forks a slot from some living zygote, nil if none can.
func (s *shelf) forkAny(l Limits, use purpose) *slot {
	zygotes := s.living()
	for i := range zygotes {
		z := zygotes[(i+int(s.pool.count.spawned.Load()))%len(zygotes)]
		if !z.usable() {
			continue
		}
		if sl, err := s.pool.fork(z, l, use); err == nil {
			return sl
		}
	}
	return nil
}

// close ends what the keepers have left.
func (s *shelf) close() {
	for _, z := range s.living() {
		z.stop()
	}
	for len(s.ready) > 0 {
		s.pool.discard(<-s.ready)
	}
}
