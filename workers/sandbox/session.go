package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Session runs cells one after the other in one process, whose namespace, threads, children and files live from cell to cell
// and with nobody else. Between cells every process of it is stopped. It is safe for concurrent callers, who wait their turn.
//
// A cell that is killed, for whatever reason, or that ends its process, ends the session: its Result says SessionEnded, and
// later cells get [ErrSessionEnded]. A failure of the sandbox matches [ErrInfrastructure], and ends the session too; another
// session that runs the same cells with the same seed gets to the same state.
type Session interface {
	// Run executes one cell. Of its limits only CPU, Wall and OutputKB are the cell's; the others are the session's.
	Run(ctx context.Context, cell Call) (Result, error)
	// Close ends the session and everything in it. It may be called at any time and more than once.
	Close() error
}

// SessionOptions configures a session.
type SessionOptions struct {
	ID     string        // names the session in errors
	Limits Limits        // of every cell, and of memory, processes and files for the session; zero fields take the pool's
	Seed   uint64        // seeds random, numpy.random and os.urandom once, at the first cell
	Small  bool          // use the small profile; by default a session has everything preloaded
	Idle   time.Duration // the session is closed after this long without a cell, default: 30 minutes
}

// ErrSessionEnded matches what later cells of an ended session get.
var ErrSessionEnded = errors.New("sandbox: the session has ended")

// idleLimit is longer than a model takes for a turn, and short enough that sessions nobody closed do not pile up.
const idleLimit = 30 * time.Minute

// session is a Session on one slot.
type session struct {
	pool  *Pool
	opt   SessionOptions
	slot  *slot
	meter *meter
	turn  chan struct{} // holds a value while a cell runs or the session closes
	idle  *time.Timer
	stop  func() bool // unhooks the pool's end

	gone   chan struct{} // closed when the status pipe has ended
	status []byte        // what it said; read it after gone
	spent  time.Duration // CPU time of the cells so far
	ended  error         // why there are no more cells
	closed sync.Once
}

// Open forks a process for a session, waiting while Options.MaxSessions are open. The session ends with Close, with the pool,
// or when it has been idle for too long; ctx only bounds the opening.
func (p *Pool) Open(ctx context.Context, opt SessionOptions) (Session, error) {
	opt.Limits = opt.Limits.withDefaults(p.opt.Limits)
	opt.Idle = cmp.Or(opt.Idle, idleLimit)
	if err := opt.Limits.validate(); err != nil {
		return nil, err
	}
	if !p.enter() {
		return nil, ErrClosed
	}
	sl, err := p.sessionSlot(ctx, opt)
	if err != nil {
		p.calls.Done()
		return nil, err
	}
	s := &session{pool: p, opt: opt, slot: sl, meter: newMeter(sl), turn: make(chan struct{}, 1), gone: make(chan struct{})}
	go func() {
		s.status, _ = io.ReadAll(sl.status)
		close(s.gone)
	}()
	s.turn <- struct{}{} // an end that comes at once waits until there is something to end
	s.idle = time.AfterFunc(opt.Idle, func() { s.end(fmt.Errorf("%w: session %s was idle for %v", ErrSessionEnded, opt.ID, opt.Idle)) })
	s.stop = context.AfterFunc(p.life, func() { s.end(ErrClosed) })
	<-s.turn
	return s, nil
}

// sessionSlot waits for a place and forks the process.
func (p *Pool) sessionSlot(ctx context.Context, opt SessionOptions) (*slot, error) {
	select {
	case p.sessions <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.life.Done():
		return nil, ErrClosed
	}
	sl, err := p.forkSession(ctx, opt)
	if err != nil {
		<-p.sessions
		return nil, p.counted(Result{}, err)
	}
	for _, f := range []**os.File{&sl.stdin, &sl.stdout, &sl.stderr} { // each cell brings its own
		(*f).Close()
		*f = nil
	}
	return sl, nil
}

func (p *Pool) forkSession(ctx context.Context, opt SessionOptions) (*slot, error) {
	if p.opt.plain() {
		p.opt.Log.Warn("sandbox: INSECURE session", "session", opt.ID)
		return p.subprocess(opt.Limits, manyCells)
	}
	shelf := p.shelves[len(p.shelves)-1]
	if opt.Small {
		shelf = p.shelves[0]
	}
	return shelf.take(ctx, opt.ID, opt.Limits, manyCells)
}

// Run implements [Session].
func (s *session) Run(ctx context.Context, c Call) (Result, error) {
	c.Limits = c.Limits.withDefaults(s.opt.Limits)
	c.Seed = s.opt.Seed
	if err := c.Limits.validate(); err != nil {
		return Result{}, err
	}
	asked := time.Now()
	if err := s.begin(ctx); err != nil {
		return Result{}, err
	}
	defer s.rest()
	if s.pool.opt.plain() {
		s.pool.opt.Log.Warn("sandbox: INSECURE call", "call", c.ID, "session", s.opt.ID)
	}
	queue := time.Since(asked)
	res, err := s.cell(ctx, c)
	s.pool.leave()
	s.spent += res.CPU
	res.Queue, res.Tier, res.Profile = queue, s.pool.tier, s.slot.profile()
	return res, s.pool.counted(res, err)
}

// begin waits for the session's turn and then for the pool's.
func (s *session) begin(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.ended != nil {
		<-s.turn
		return s.ended
	}
	s.idle.Stop()
	if err := s.pool.turn(ctx); err != nil {
		s.rest()
		return err
	}
	return nil
}

func (s *session) isGone() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// rest gives the turn back and lets the session grow old.
func (s *session) rest() {
	if s.ended == nil {
		s.idle.Reset(s.opt.Idle)
	}
	<-s.turn
}

// Close implements [Session].
func (s *session) Close() error {
	s.end(fmt.Errorf("%w: session %s was closed", ErrSessionEnded, s.opt.ID))
	return nil
}

// end kills the session's processes, which ends a running cell, and gives back what the session holds.
func (s *session) end(why error) {
	s.slot.kill()
	s.turn <- struct{}{}
	s.finish(why)
	<-s.turn
}

// finish is called by whoever has the turn.
func (s *session) finish(why error) {
	s.closed.Do(func() {
		s.ended = why
		s.idle.Stop()
		s.stop()
		s.slot.kill()
		if s.slot.awaitGone(teardownDeadline) {
			s.pool.seats.give(s.slot.seat)
		}
		s.slot.close()
		<-s.pool.sessions
		s.pool.calls.Done()
	})
}

// haltDeadline is how long a session's processes may take to stop. On a machine with all cores busy each has to be scheduled
// once; only a program that forks faster than it can be stopped takes longer.
const haltDeadline = 10 * time.Second

// halt stops every process of the session, so that nothing runs or writes between cells. It reports false when they do not
// stop: then the session has to end. Processes that fork while they are being stopped are found in the next round.
func (s *session) halt() bool {
	pause := 50 * time.Microsecond
	for end := time.Now().Add(haltDeadline); time.Now().Before(end); time.Sleep(pause) {
		pause = min(2*pause, 5*time.Millisecond)
		running := 0
		for _, pid := range s.meter.members() {
			stopped, held := stoppedState(pid)
			if !stopped {
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
			if !held {
				running++
			}
		}
		if running == 0 {
			return true
		}
	}
	return false
}

// thaw lets the session's processes go on.
func (s *session) thaw() {
	for _, pid := range s.meter.members() {
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}
