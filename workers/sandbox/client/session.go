package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

// session is a sandbox.Session that lives on one node, for as long as the node does.
type session struct {
	*Client
	node *node
	id   string
	opt  sandbox.SessionOptions

	turn  chan struct{} // holds a value while a cell runs
	mu    sync.Mutex
	ended error
}

var _ sandbox.Session = (*session)(nil)

// Open opens a session on some node, as a pool does on its own machine. ctx bounds the opening only. Idle sessions are closed
// by their node; one whose node dies fails its next cell with an error that matches [sandbox.ErrInfrastructure].
func (c *Client) Open(ctx context.Context, opt sandbox.SessionOptions) (sandbox.Session, error) {
	s := &session{Client: c, id: c.key(opt.ID), opt: opt, turn: make(chan struct{}, 1)}
	opt.Limits = opt.Limits.WithDefaults(c.opt.Limits)
	body, err := json.Marshal(wire.Session{SessionID: s.id, RolloutID: rolloutOf(opt.ID), Seed: opt.Seed, Small: opt.Small,
		IdleMs: opt.Idle.Milliseconds(), Limits: limitsOf(opt.Limits), Isolation: string(c.opt.Tier)})
	if err != nil {
		return nil, err
	}
	var avoid *node
	for attempts := 0; ; {
		n, err := c.nodes.acquire(ctx, hashOf(s.id), avoid)
		if err != nil {
			return nil, err
		}
		var made wire.Session
		a := c.post(ctx, n, wire.SessionPath, s.id, body, &made)
		c.nodes.release(n, a)
		switch a.kind {
		case completed:
			s.node, s.id = n, made.SessionID
			return s, nil
		case invalid, gone:
			return nil, fmt.Errorf("sandbox session %s: %w", opt.ID, a.err)
		case abandoned:
			return nil, ctx.Err()
		case lost, failed:
			// What may have been opened is closed by its node when it has been idle for long enough.
			if attempts++; attempts >= c.opt.Attempts {
				return nil, fmt.Errorf("%w: session %s, after %d attempts: %w", sandbox.ErrInfrastructure, opt.ID, attempts, a.err)
			}
			s.id = c.key(opt.ID)
		}
		if c.nodes.outOfPatience() {
			return nil, fmt.Errorf("%w: session %s: %w", sandbox.ErrInfrastructure, opt.ID, a.err)
		}
		avoid = n
	}
}

// path is where the session's cells go. Ids have slashes in them, which are escaped.
func (s *session) path() string { return wire.SessionPath + "/" + url.PathEscape(s.id) }

// Run implements [sandbox.Session].
func (s *session) Run(ctx context.Context, cell sandbox.Call) (sandbox.Result, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return sandbox.Result{}, ctx.Err()
	}
	defer func() { <-s.turn }()
	if err := s.why(); err != nil {
		return sandbox.Result{}, err
	}
	began := time.Now()
	cell.Limits = sandbox.Limits{CPU: cell.Limits.CPU, Wall: cell.Limits.Wall, OutputKB: cell.Limits.OutputKB}.WithDefaults(s.opt.Limits)
	key := s.key(cell.ID)
	for attempts := 1; ; attempts++ {
		a, err := s.cell(ctx, cell, key)
		if err != nil {
			return sandbox.Result{}, err
		}
		switch a.kind {
		case completed:
			r := resultOf(a.result)
			r.Queue = max(time.Since(began)-r.Wall, r.Queue)
			if r.SessionEnded {
				s.end(fmt.Errorf("%w: a cell ended session %s", sandbox.ErrSessionEnded, s.opt.ID))
			}
			return r, nil
		case abandoned:
			return sandbox.Result{}, ctx.Err()
		case busy:
			attempts-- // it did not reach the session
			if err := sleep(ctx, a.after); err != nil {
				return sandbox.Result{}, err
			}
			continue
		case lost: // the node may have the result: the key finds it
			if attempts < s.Client.opt.Attempts {
				if err := sleep(ctx, firstPause<<min(attempts, 6)); err != nil {
					return sandbox.Result{}, err
				}
				continue
			}
		case invalid:
			if err := fmt.Errorf("sandbox session %s: %w", s.opt.ID, a.err); !a.result.SessionEnded {
				return sandbox.Result{}, err
			}
			s.end(fmt.Errorf("%w: %w", sandbox.ErrSessionEnded, a.err))
			return sandbox.Result{}, s.why()
		}
		err = fmt.Errorf("%w: session %s is lost: %w", sandbox.ErrInfrastructure, s.opt.ID, a.err)
		s.end(errors.Join(sandbox.ErrSessionEnded, err))
		return sandbox.Result{}, err
	}
}

// cell sends one cell to the session's node.
func (s *session) cell(ctx context.Context, cell sandbox.Call, key string) (answer, error) {
	body, err := s.request(ctx, cell, key)
	if err != nil {
		return answer{}, fmt.Errorf("sandbox session %s: %w", s.opt.ID, err)
	}
	s.nodes.claim(s.node)
	a := s.send(ctx, s.node, s.path()+"/execute", key, body)
	s.nodes.release(s.node, a)
	return a, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *session) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.ended = why
	}
}

// closeTimeout bounds the farewell; a node that does not hear it closes the session when it has been idle for long enough.
const closeTimeout = 5 * time.Second

// Close implements [sandbox.Session].
func (s *session) Close() error {
	if s.why() != nil {
		return nil
	}
	s.end(fmt.Errorf("%w: session %s was closed", sandbox.ErrSessionEnded, s.opt.ID))
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.node.base+s.path(), nil)
	if err != nil {
		return err
	}
	r, err := s.http.Do(q)
	if err != nil {
		return fmt.Errorf("close session %s on %s: %w", s.opt.ID, s.node.base, err)
	}
	return r.Body.Close()
}
