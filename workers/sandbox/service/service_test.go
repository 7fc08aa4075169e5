package service

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

// testDeadline bounds every wait of a test; nothing is asserted about time.
const testDeadline = time.Minute

// runnerFunc is a runner made of a function.
type runnerFunc func(ctx context.Context, c sandbox.Call) (sandbox.Result, error)

func (f runnerFunc) Run(ctx context.Context, c sandbox.Call) (sandbox.Result, error) {
	return f(ctx, c)
}

// gate is a runner whose calls wait until they are let through; what they print is their code.
type gate struct {
	open    chan struct{}
	mu      sync.Mutex
	started []string
	begun   chan string
}

func newGate() *gate { return &gate{open: make(chan struct{}), begun: make(chan string, 100000)} }

func (g *gate) Run(ctx context.Context, c sandbox.Call) (sandbox.Result, error) {
	g.mu.Lock()
	g.started = append(g.started, c.Code)
	g.mu.Unlock()
	g.begun <- c.Code
	select {
	case <-g.open:
		return sandbox.Result{Status: sandbox.Success, Stdout: c.Code, Wall: time.Millisecond}, nil
	case <-ctx.Done():
		return sandbox.Result{}, ctx.Err()
	}
}

func (g *gate) order() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.started)
}

// await waits for a call to start.
func (g *gate) await(t *testing.T) string {
	t.Helper()
	select {
	case code := <-g.begun:
		return code
	case <-time.After(testDeadline):
		t.Fatal("no call starts")
		return ""
	}
}

// node is a service behind a real HTTP server.
type node struct {
	*Service
	url string
}

func start(t *testing.T, o Options) node {
	t.Helper()
	if o.Running == 0 {
		o.Running = 4
	}
	o.Node = "node"
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return node{s, server.URL}
}

// send posts a body and returns the answer.
func (n node) send(t testing.TB, ctx context.Context, path string, body any) (int, []byte, http.Header) {
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			t.Error(err)
		}
		text = string(b)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url+path, strings.NewReader(text))
	if err != nil {
		t.Error(err)
		return 0, nil, nil
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, nil, nil // the test's own cancellation
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, b, r.Header
}

func (n node) call(t testing.TB, q wire.Request) wire.Result {
	code, body, _ := n.send(t, t.Context(), wire.ExecutePath, q)
	var r wire.Result
	if t.Context().Err() != nil {
		return r // the test is over
	}
	if err := json.Unmarshal(body, &r); code != http.StatusOK || err != nil {
		t.Errorf("code %d, %s", code, body)
	}
	return r
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(testDeadline); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

func (n node) waiting() int {
	n.desk.mu.Lock()
	defer n.desk.mu.Unlock()
	return n.desk.queued()
}
