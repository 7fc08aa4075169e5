package local

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// defaultGrace is a worker's time for a clean stop.
const defaultGrace = 15 * time.Second

// Supervisor keeps worker processes running.
type Supervisor struct {
	// Dir is the folder whose pids.json lists the children.
	Dir string
	// OnExit is told of each child's end, before it is started again; its
	// deadline is ctx's. nil does nothing. Take what the dead child left behind
	// (TakeTokens) here, and do slow work elsewhere.
	OnExit func(ctx context.Context, c Child)
	// Grace is a child's time for a clean stop; default 15 s.
	Grace time.Duration

	pids *pidFile
}

// exitTimeout bounds OnExit.
const exitTimeout = 30 * time.Second

// Supervisor keeps children in this stack's folder and pids.json.
func (s *Stack) Supervisor() *Supervisor { return &Supervisor{Dir: s.dir, pids: s.pids} }

// Supervise runs the children until ctx ends, which is no error, or one of
// them keeps dying. Either way all of them are gone when it returns.
func (s *Supervisor) Supervise(ctx context.Context, children []Child) error {
	if s.pids == nil {
		s.pids = newPidFile(s.Dir)
		if err := s.pids.reset(); err != nil {
			return err
		}
	}
	if s.Grace == 0 {
		s.Grace = defaultGrace
	}
	spawner := newSpawner()
	defer spawner.close()
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range children {
		if c.Name == "" || len(c.Args) == 0 || c.LogFile == "" {
			return fmt.Errorf("child %+v lacks a name, a program or a log file", c)
		}
	}
	for _, c := range children {
		g.Go(func() error { return s.keep(ctx, spawner, c) })
	}
	return g.Wait()
}

// keep runs one child again and again.
func (s *Supervisor) keep(ctx context.Context, spawner *spawner, c Child) error {
	var r restarts
	for {
		p, err := spawner.start(c, s.pids)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			p.end(s.Grace)
			return nil
		case <-p.done:
		}
		if ctx.Err() != nil {
			return nil
		}
		s.tell(ctx, c)
		pause, err := r.next(p)
		if err != nil {
			return fmt.Errorf("worker %s: %w", c.Name, err)
		}
		if !wait(ctx, pause) {
			return nil
		}
	}
}

func (s *Supervisor) tell(ctx context.Context, c Child) {
	if s.OnExit == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, exitTimeout)
	defer cancel()
	s.OnExit(ctx, c)
}
