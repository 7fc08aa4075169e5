package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

// openTimeout is how long a session waits for a place and a process before its client is told to come again.
const openTimeout = 10 * time.Second

// sessions are the open sessions by id. Those that ended by themselves are forgotten when others are opened.
type sessions struct {
	mu   sync.Mutex
	open map[string]*openSession
}

type openSession struct {
	sandbox.Session
	rollout string
	limits  sandbox.Limits
	idle    time.Duration // after which the pool closes it
	used    time.Time
}

// errNoSession answers for a session that is not open here.
var errNoSession = errors.New("no such session is open here: it was closed, was idle for too long, or lived on another node")

// errTaken refuses a session id that is in use.
var errTaken = errors.New("a session with this id is open: give each session an id of its own, or none")

// openSession serves POST /v1/sessions.
func (s *Service) openSession(w http.ResponseWriter, r *http.Request) {
	body, charged, err := s.read(w, r)
	defer s.desk.budget.give(charged)
	var q wire.Session
	if err == nil {
		err = strict(body, &q)
	}
	if err == nil {
		err = s.startSession(r.Context(), &q)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	reply(w, http.StatusCreated, q)
}

// startSession opens the session and fills in its id.
func (s *Service) startSession(ctx context.Context, q *wire.Session) error {
	if s.desk.opt.Sessions == nil {
		return errors.New("this service has no sessions")
	}
	if s.desk.isDraining() {
		return &refusal{errDraining.Error(), time.Second}
	}
	if len(q.SessionID) > maxKey || q.IdleMs < 0 {
		return fmt.Errorf("session_id has %d bytes and idle_ms is %d, expected at most %d and at least 0", len(q.SessionID), q.IdleMs, maxKey)
	}
	if err := s.isolates(q.Isolation); err != nil {
		return err
	}
	l, err := s.limits(q.Limits)
	if err != nil {
		return err
	}
	if q.SessionID == "" {
		q.SessionID = newID()
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	idle := time.Duration(q.IdleMs) * time.Millisecond
	open, err := s.desk.opt.Sessions.Open(ctx, sandbox.SessionOptions{ID: q.SessionID, Limits: l, Seed: q.Seed, Small: q.Small, Idle: idle})
	if err != nil {
		return &refusal{fmt.Sprintf("no session could be opened: %v", err), time.Second}
	}
	if !s.sessions.add(q.SessionID, &openSession{open, q.RolloutID, l, idle, time.Now()}) {
		_ = open.Close()
		return errTaken
	}
	return nil
}

// add registers a session unless the id is taken, and forgets those that the pool must have closed.
func (s *sessions) add(id string, o *openSession) bool {
	const unset = time.Hour // longer than the pool's own default
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, p := range s.open {
		if idle := max(p.idle, unset); time.Since(p.used) > 2*idle {
			delete(s.open, other)
		}
	}
	if s.open == nil {
		s.open = map[string]*openSession{}
	}
	if s.open[id] != nil {
		return false
	}
	s.open[id] = o
	return true
}

func (s *sessions) get(id string) *openSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	if o != nil {
		o.used = time.Now()
	}
	return o
}

// remove takes a session out; the caller closes it.
func (s *sessions) remove(id string) *openSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[id]
	delete(s.open, id)
	return o
}

func (s *sessions) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.open {
		_ = o.Close()
	}
	s.open = nil
}

// executeCell serves POST /v1/sessions/{id}/execute. Cells wait for run tokens like calls, and for their session's turn.
func (s *Service) executeCell(w http.ResponseWriter, r *http.Request) {
	o := s.sessions.get(r.PathValue("id"))
	if o == nil {
		reply(w, http.StatusNotFound, wire.Error{Error: errNoSession.Error()})
		return
	}
	body, charged, err := s.read(w, r)
	var q wire.Request
	if err == nil {
		q, err = request(body)
	}
	var t *ticket
	if err == nil {
		q.RolloutID = o.rollout
		t, err = s.ticket(r, q)
	}
	if err == nil {
		t.on = cellRunner{s, o, r.PathValue("id")}
		t.digest = digestOf(r.PathValue("id"), q.Code, q.Stdin)
		t.call.Limits = sandbox.Limits{CPU: t.call.Limits.CPU, Wall: t.call.Limits.Wall, OutputKB: t.call.Limits.OutputKB}
	}
	s.serve(w, r, t, charged, err)
}

// cellRunner runs cells of one session, and forgets it when it ends.
type cellRunner struct {
	*Service
	session *openSession
	id      string
}

func (c cellRunner) Run(ctx context.Context, call sandbox.Call) (sandbox.Result, error) {
	r, err := c.session.Run(ctx, call)
	if r.SessionEnded || err != nil && ctx.Err() == nil {
		if o := c.sessions.remove(c.id); o != nil {
			_ = o.Close()
		}
	}
	return r, err
}

// closeSession serves DELETE /v1/sessions/{id}.
func (s *Service) closeSession(w http.ResponseWriter, r *http.Request) {
	o := s.sessions.remove(r.PathValue("id"))
	if o == nil {
		reply(w, http.StatusNotFound, wire.Error{Error: errNoSession.Error()})
		return
	}
	_ = o.Close()
	w.WriteHeader(http.StatusNoContent)
}
