package sandbox

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// Pool runs calls on warm slots of a few zygotes, and sessions on slots of their own. It is safe for any number of
// concurrent callers: at most Options.MaxRunning run, the others wait their turn. A zygote that dies is replaced.
type Pool struct {
	opt       Options
	tier      Tier
	reason    string // why the tier is not A
	filter    []byte
	seats     *seats
	shelves   []*shelf        // the small profile first
	libraries map[string]bool // names that send a call to the full profile
	cores     int             // that the process may use
	running   chan struct{}   // one value for each running call or cell
	sessions  chan struct{}   // one value for each open session
	life      context.Context // ends with Close
	end       context.CancelFunc
	keepers   sync.WaitGroup
	calls     sync.WaitGroup
	once      sync.Once

	mu     sync.Mutex
	closed bool

	landlock func() bool // whether the kernel has it and zygotes use it
	count    counters
	check    checks
}

var _ Runner = (*Pool)(nil)

// Start starts a pool, runs the preflight canaries inside a slot of every zygote, and fails closed: when the required tier
// does not hold the error names each missing layer and what would give it. An insecure pool starts with whatever there is,
// and says so in its log.
func Start(ctx context.Context, opt Options) (*Pool, error) {
	opt, err := opt.resolve()
	if err != nil {
		return nil, err
	}
	p, err := open(opt)
	if err != nil {
		return nil, err
	}
	if opt.Insecure {
		opt.Log.Warn("sandbox: INSECURE: programs run without isolation, with this user's rights", "left_out", opt.Without)
	}
	if err := p.launch(ctx); err != nil {
		p.Close()
		return nil, err
	}
	p.keepers.Go(p.recheck)
	return p, nil
}

// open finds the tier and makes what the zygotes share.
func open(opt Options) (*Pool, error) {
	f, err := filter()
	if err != nil {
		return nil, err
	}
	p := &Pool{opt: opt, tier: TierA, filter: f, seats: &seats{}, cores: runtime.GOMAXPROCS(0), running: make(chan struct{}, opt.MaxRunning),
		sessions: make(chan struct{}, opt.MaxSessions)}
	p.landlock = func() bool { return landlockABI() > 0 && !opt.Without.Landlock }
	p.life, p.end = context.WithCancel(context.Background())
	if !opt.plain() {
		var kinds []profile
		kinds, p.libraries = profiles(opt.Preload)
		for _, kind := range kinds {
			p.shelves = append(p.shelves, newShelf(p, kind))
		}
	}
	return p, p.chooseTier()
}

// chooseTier opens the cgroups of tier A, or says why the tier is a lower one.
func (p *Pool) chooseTier() error {
	if p.opt.plain() {
		p.tier, p.reason = TierNone, "insecure was asked for"
		return nil
	}
	err := errors.New("left out")
	if !p.opt.Without.Cgroups {
		p.seats.cgroups, err = openCgroups()
	}
	switch {
	case p.opt.Insecure:
		p.tier, p.reason = TierNone, "insecure was asked for"
	case err == nil:
	case p.opt.Tier == TierA:
		return infrastructure("tier A needs memory and pids cgroups: %w; or accept tier B", err)
	default:
		p.tier, p.reason = TierB, err.Error()
	}
	if err != nil {
		p.seats.cgroups = nil
	}
	return nil
}

// launch starts the profiles together.
func (p *Pool) launch(ctx context.Context) error {
	errs := make([]error, len(p.shelves))
	var started sync.WaitGroup
	for i, s := range p.shelves {
		started.Go(func() { errs[i] = s.launch(ctx) })
	}
	started.Wait()
	return errors.Join(errs...)
}

// shelfFor chooses the profile of a program.
func (p *Pool) shelfFor(code string) *shelf {
	if len(p.shelves) > 1 && mentions(code, p.libraries) {
		return p.shelves[1]
	}
	return p.shelves[0]
}

func (p *Pool) fork(z *zygote, l Limits, use purpose) (*slot, error) {
	seat, err := p.seats.take()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	sl, err := z.spawn(seat, l, use)
	if err != nil {
		p.seats.give(seat)
		return nil, err
	}
	p.count.spawn(time.Since(began))
	return sl, nil
}

// discard ends an unused slot.
func (p *Pool) discard(sl *slot) {
	sl.kill()
	if sl.awaitGone(teardownDeadline) {
		p.seats.give(sl.seat)
	}
	sl.close()
}

// Close ends every zygote, session and running call and removes the pool's cgroups. Calls that were running return errors.
func (p *Pool) Close() {
	p.once.Do(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.end()
		p.keepers.Wait()
		for _, s := range p.shelves {
			s.close()
		}
		p.calls.Wait()
		p.seats.close()
	})
}
