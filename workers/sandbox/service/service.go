package service

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

// Service answers HTTP. It owns no socket: see Serve.
type Service struct {
	desk     *desk
	meters   *meters
	sessions sessions
	mux      *http.ServeMux
}

// New makes a service. Its runner stays the caller's to close, after Drain.
func New(o Options) (*Service, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if err := o.Judge.check(); err != nil {
		return nil, err
	}
	m := newMeters(o.Registry)
	s := &Service{desk: newDesk(o, m), meters: m, mux: http.NewServeMux()}
	m.watch(s.desk)
	s.routes()
	return s, nil
}

func (s *Service) routes() {
	s.mux.HandleFunc("POST "+wire.ExecutePath, s.execute)
	s.mux.HandleFunc("POST "+wire.BatchPath, s.batch)
	s.mux.HandleFunc("DELETE "+wire.CallPath+"{id...}", s.cancelCall)
	s.mux.HandleFunc("POST "+wire.SessionPath, s.openSession)
	s.mux.HandleFunc("POST "+wire.SessionPath+"/{id}/execute", s.executeCell)
	s.mux.HandleFunc("DELETE "+wire.SessionPath+"/{id}", s.closeSession)
	s.mux.HandleFunc("GET "+wire.StatusPath, s.nativeStatus)
	for _, kind := range []string{"run", "judge"} {
		s.mux.HandleFunc("POST /"+kind, s.judgeOne(kind == "judge"))
		s.mux.HandleFunc("POST /"+kind+"/batch", s.judgeBatch(kind == "judge", false))
		s.mux.HandleFunc("POST /"+kind+"/long-batch", s.judgeBatch(kind == "judge", true))
	}
	s.mux.HandleFunc("POST /batch", s.judgeBatch(false, false))
	s.mux.HandleFunc("POST /long-batch", s.judgeBatch(false, true))
	s.mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { replyJudge(w, "pong") })
	s.mux.HandleFunc("GET /status", s.judgeStatus)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(s.meters.registry, promhttp.HandlerOpts{}))
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // that of the connection's last answer
	s.mux.ServeHTTP(w, r)
}

// Drain takes nothing new from now on, rejects what waits, and returns when the running calls have ended and the sessions are
// closed. When ctx ends first the calls are killed, and the error says so.
func (s *Service) Drain(ctx context.Context) error {
	err := s.desk.drain(ctx)
	s.sessions.closeAll()
	return err
}

func (s *Service) ready(w http.ResponseWriter, _ *http.Request) {
	err := s.desk.opt.Healthy()
	if s.desk.isDraining() {
		err = errDraining
	}
	if err != nil {
		reply(w, http.StatusServiceUnavailable, wire.Error{Error: err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// judgeStatus has code-judge's two fields and no other: its clients make a class of them.
func (s *Service) judgeStatus(w http.ResponseWriter, _ *http.Request) {
	d := s.desk
	d.mu.Lock()
	n := d.queued()
	d.mu.Unlock()
	replyJudge(w, struct {
		Queue      int `json:"queue"`
		NumWorkers int `json:"num_workers"`
	}{n, d.opt.Running})
}

func (s *Service) nativeStatus(w http.ResponseWriter, _ *http.Request) {
	d := s.desk
	healthy := d.opt.Healthy() == nil
	d.mu.Lock()
	st := wire.Status{Node: d.opt.Node, Ready: healthy && !d.draining, Draining: d.draining, Tier: string(d.opt.Tier), Running: d.running,
		Queued: map[string]int{}, HeldBytes: d.budget.held.Load(), KeptResults: d.ledger.order.Len()}
	for c := range classes {
		st.Queued[c.String()] = d.queues[c].size
	}
	d.mu.Unlock()
	reply(w, http.StatusOK, st)
}

const (
	headerTimeout = 10 * time.Second // for a client's request line and headers
	idleTimeout   = 2 * time.Minute  // longer than the pauses of rollouts between their turns
	closeTimeout  = 5 * time.Second  // for answers that are still being written after the last call ended
)
