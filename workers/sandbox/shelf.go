package sandbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// shelf is the zygotes of one profile and the slots forked ahead from them.
type shelf struct {
	pool    *Pool
	profile profile
	ready   chan *slot
	woken   chan struct{} // holds a value when a keeper should look again
	tickets atomic.Uint32 // of calls that found no slot: they begin with different zygotes

	mu      sync.Mutex
	taken   int       // places of ready that a slot has or is forked for
	zygotes []*zygote // nil while one is being started
	lastErr error     // why the latest start of a zygote, or fork of a slot, failed
}

func newShelf(p *Pool, kind profile) *shelf {
	return &shelf{pool: p, profile: kind, ready: make(chan *slot, p.opt.Warm), woken: make(chan struct{}, 1), zygotes: make([]*zygote, p.opt.Zygotes)}
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
			s.purge()
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

// fill forks slots ahead until the zygote fails or the pool closes, with cores that no call needs: a fork beside calls that
// have every core would make one of them wait for a time slice, to save another less than that. What fails without the zygote
// (descriptors, memory, cgroups) is tried again, for the sake of the calls that run on it.
func (s *shelf) fill(z *zygote) {
	const pause = 100 * time.Millisecond
	for {
		var again <-chan time.Time
		if s.pool.spare() && s.reserve() {
			err := s.stock(z)
			if err == nil {
				s.wake() // another keeper may have a core, too
				continue
			}
			if !z.usable() {
				s.wake() // another keeper has a place to fill
				return
			}
			again = time.After(pause)
		}
		select {
		case <-s.woken:
		case <-again:
		case <-z.dead:
			return
		case <-s.pool.life.Done():
			return
		}
	}
}

// wake lets a keeper look whether there is something to do.
func (s *shelf) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// reserve takes a free place of the shelf, false if there is none.
func (s *shelf) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == cap(s.ready) {
		return false
	}
	s.taken++
	return true
}

// release frees a place.
func (s *shelf) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
}

// stock forks a slot into a reserved place.
func (s *shelf) stock(z *zygote) error {
	z.turn <- struct{}{} // given back within the deadline of a spawn
	defer func() { <-z.turn }()
	sl, err := s.pool.fork(z, s.pool.opt.Limits.slotLimits(), oneCall)
	if err != nil {
		s.release()
		s.failed(err)
		return err
	}
	s.ready <- sl
	return nil
}

// failed keeps and logs why there is no slot.
func (s *shelf) failed(err error) {
	s.mu.Lock()
	s.lastErr = err
	s.mu.Unlock()
	s.pool.opt.Log.Error("sandbox: no slot", "profile", s.profile.name, "error", err)
}

// wanted is what a slot shall be like.
type wanted struct {
	limits Limits // what is built into a slot
	use    purpose
	warm   bool // a slot of the shelf serves
}

// take returns a warm slot whose zygote lives, or one forked for the call.
func (s *shelf) take(ctx context.Context, id string, l Limits, use purpose) (*slot, error) {
	w := wanted{limits: l.slotLimits(), use: use}
	w.warm = use == oneCall && w.limits == s.pool.opt.Limits.slotLimits()
	limit, again := time.NewTimer(slotDeadline), time.NewTicker(sampleEvery)
	defer limit.Stop()
	defer again.Stop()
	for {
		sl, busy := s.obtain(w)
		if sl != nil {
			return sl, nil
		}
		select {
		case busy.queue() <- struct{}{}:
			if sl := s.forkFrom(busy, w); sl != nil {
				return sl, nil
			}
		case <-again.C:
		case <-limit.C:
			return nil, infrastructure("call %s: no slot within %v; last failure of a zygote: %v", id, slotDeadline, s.failure())
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.pool.life.Done():
			return nil, ErrClosed
		}
	}
}

// obtain takes a slot that is ready, or has a living zygote fork one that forks none at the moment; or else it names one that does.
func (s *shelf) obtain(w wanted) (sl *slot, busy *zygote) {
	if w.warm {
		if sl := s.next(); sl != nil {
			return sl, nil
		}
	}
	zygotes := s.living()
	first := int(s.tickets.Add(1))
	for i := range zygotes {
		z := zygotes[(first+i)%len(zygotes)]
		select {
		case z.turn <- struct{}{}:
			if sl := s.forkFrom(z, w); sl != nil {
				return sl, nil
			}
		default:
			busy = z
		}
	}
	return nil, busy
}

// forkFrom forks a slot from z, whose turn it gives back, unless one has become ready before.
func (s *shelf) forkFrom(z *zygote, w wanted) *slot {
	defer func() { <-z.turn }()
	if w.warm {
		if sl := s.next(); sl != nil {
			return sl
		}
	}
	if !z.usable() {
		return nil
	}
	sl, err := s.pool.fork(z, w.limits, w.use)
	if err != nil {
		s.failed(err)
		return nil
	}
	return sl
}

// next takes a slot that is ready, nil if there is none whose zygote lives.
func (s *shelf) next() *slot {
	for {
		select {
		case sl := <-s.ready:
			s.release()
			if s.pool.spare() {
				s.wake()
			}
			if sl.zygote.alive() {
				return sl
			}
			s.pool.discard(sl)
		default:
			return nil
		}
	}
}

// purge discards the slots of dead zygotes, whose places the living ones fill.
func (s *shelf) purge() {
	for range len(s.ready) {
		select {
		case sl := <-s.ready:
			if sl.zygote.alive() {
				s.ready <- sl // into the place that it has
				continue
			}
			s.release()
			s.pool.discard(sl)
		default:
		}
	}
	s.wake()
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
