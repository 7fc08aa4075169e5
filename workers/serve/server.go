package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// Generator samples turns. *engine.Engine is one.
type Generator interface {
	Generate(ctx context.Context, req engine.Request) (engine.Generation, error)
	Stats() engine.Stats
}

// Options say what is served and within which bounds. Zero bounds take the defaults.
type Options struct {
	Model     string             // the name that clients ask for
	Template  tokenizer.Template // system text and instruction of chats; tools are those of each request
	Stop      []int32            // ids that end an answer
	Positions int                // longest context of the model

	MaxWaiting int           // answers that may wait for their first token; default 256
	MaxChoices int           // answers to one request; default 64
	Timeout    time.Duration // of one request; default 10 minutes
	MaxBody    int64         // bytes of a request; default 8 MiB

	ReadTimeout time.Duration // for a client to send its request; default 1 minute

	Now  func() time.Time // default time.Now
	Seed func() uint64    // for requests without one; default: random
	Log  *slog.Logger     // default: discard
}

func (o Options) withDefaults() Options {
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 256
	}
	if o.MaxChoices == 0 {
		o.MaxChoices = 64
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.MaxBody == 0 {
		o.MaxBody = 8 << 20
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Seed == nil {
		o.Seed = randomSeed
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server answers requests. It is safe for use by many goroutines.
type Server struct {
	opt       Options
	engine    Generator
	tokenizer *tokenizer.Tokenizer
	metrics   *metrics
	queue     queue
	began     time.Time
	requests  atomic.Uint64
	draining  atomic.Bool
}

// New makes a server. Without the turn markers in the tokenizer there are completions and no chats.
func New(g Generator, t *tokenizer.Tokenizer, o Options) (*Server, error) {
	o = o.withDefaults()
	if o.Model == "" || o.Positions < 1 || o.MaxWaiting < 1 || o.MaxChoices < 1 || o.MaxBody < 1 || o.Timeout <= 0 || o.ReadTimeout <= 0 {
		return nil, fmt.Errorf("serve: model %q with %d positions, %d waiting, %d choices, %d bytes, %v; want a name and positive numbers",
			o.Model, o.Positions, o.MaxWaiting, o.MaxChoices, o.MaxBody, o.Timeout)
	}
	s := &Server{opt: o, engine: g, tokenizer: t, began: o.Now(), queue: queue{most: o.MaxWaiting, now: o.Now}}
	var err error
	s.metrics, err = newMetrics(g, &s.queue)
	return s, err
}

// Handler returns the whole HTTP face.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", s.endpoint("chat", s.chat))
	mux.Handle("POST /v1/completions", s.endpoint("completions", s.completions))
	mux.Handle("GET /v1/models", s.endpoint("models", s.models))
	mux.Handle("GET /v1/models/{id}", s.endpoint("models", s.oneModel))
	mux.HandleFunc("GET /health", s.health)
	mux.Handle("GET /metrics", s.metrics.handler())
	for path, allowed := range map[string]string{"/v1/chat/completions": "POST", "/v1/completions": "POST", "/v1/models": "GET", "/health": "GET", "/metrics": "GET"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allowed)
			writeError(w, &apiError{status: http.StatusMethodNotAllowed, message: fmt.Sprintf("%s is not allowed here, use %s", r.Method, allowed)})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &apiError{status: http.StatusNotFound, message: fmt.Sprintf("there is no %s; see /v1/models, /v1/chat/completions, /v1/completions, /health and /metrics", r.URL.Path)})
	})
	return mux
}

// endpoint bounds a request and turns an error into an answer.
func (s *Server) endpoint(name string, serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := s.opt.Now()
		ctx, cancel := context.WithTimeoutCause(r.Context(), s.opt.Timeout, errTooLate)
		defer cancel()
		out := &recorder{ResponseWriter: w}
		out.Header().Set("X-Request-Id", fmt.Sprintf("req-%d", s.requests.Add(1)))
		var err error
		if s.draining.Load() {
			err = errDraining
		} else {
			err = s.receive(out, r)
			if err == nil {
				err = serve(out, r.WithContext(ctx))
			}
		}
		if err != nil {
			s.fail(out, r, name, err)
		}
		s.metrics.request(name, out.status(), s.opt.Now().Sub(begin))
	})
}

// receive reads a request's body within its bounds of size and time. The time ends with the body: a deadline left on the
// connection would look like the client's departure while its answer is being sampled.
func (s *Server) receive(w *recorder, r *http.Request) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.opt.ReadTimeout)) // a writer without one (a test's) cannot get stuck
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.opt.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &apiError{status: http.StatusRequestTimeout, message: fmt.Sprintf("the request was not sent within %v", s.opt.ReadTimeout)}
	case err != nil:
		return badRequest("", "the request could not be read: %v", err)
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// fail tells the client what went wrong, within a stream that has begun as its last event. Whoever has gone is told nothing.
func (s *Server) fail(w *recorder, r *http.Request, name string, err error) {
	e := asAPIError(err)
	if r.Context().Err() != nil && e.status == statusGone {
		w.code = statusGone
		return
	}
	if e.status >= http.StatusInternalServerError {
		s.opt.Log.Error("request failed", "endpoint", name, "request", w.Header().Get("X-Request-Id"), "error", err)
	}
	if w.code != 0 {
		_ = writeEvent(w, e.body()) // to a client that may have gone
		w.code = e.status           // for the metrics; the client has seen 200
		return
	}
	writeError(w, e)
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

// room is the longest context that both the model and the KV cache can hold.
func (s *Server) room() int {
	return min(s.opt.Positions, s.engine.Stats().TotalBlocks*model.BlockTokens)
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		writeError(w, errDraining)
		return
	}
	_ = writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "model": s.opt.Model}) // a client that has gone
}
