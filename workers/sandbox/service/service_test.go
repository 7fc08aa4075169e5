package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
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

func TestACallIDRunsItsProgramOnce(t *testing.T) {
	g := newGate()
	n := start(t, Options{Runner: g})
	q := wire.Request{CallID: "r/1", Code: "a"}
	var wg sync.WaitGroup
	var joined atomic.Int64
	for range 20 {
		wg.Go(func() {
			if r := n.call(t, q); r.Status != "success" || r.Stdout != "a" {
				t.Errorf("got %+v", r)
			} else if r.Joined {
				joined.Add(1)
			}
		})
	}
	g.await(t)
	eventually(t, "all have joined", func() bool {
		n.desk.mu.Lock()
		defer n.desk.mu.Unlock()
		return n.desk.ledger.calls[nativeKey("r/1")].waiters == 20
	})
	if code, body, _ := n.send(t, t.Context(), wire.ExecutePath, wire.Request{CallID: "r/1", Code: "b"}); code != http.StatusConflict {
		t.Errorf("another program under the id got %d %s, expected 409", code, body)
	}
	close(g.open)
	wg.Wait()
	if r := n.call(t, q); !r.Joined || r.Stdout != "a" {
		t.Errorf("after the end: %+v, expected the kept result", r)
	}
	if got := g.order(); len(got) != 1 || joined.Load() != 19 {
		t.Errorf("%d runs, %d joined, expected 1 and 19", len(got), joined.Load())
	}
}

func TestKeptResultsAreBoundedAndLeaveNoBytesBehind(t *testing.T) {
	n := start(t, Options{Runner: runnerFunc(func(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
		return sandbox.Result{Status: sandbox.Success, Stdout: strings.Repeat("x", 1000)}, nil
	}), MaxBytes: 1 << 20, KeepBytes: 10 * (ticketBytes + 1000)})
	for i := range 50 {
		n.call(t, wire.Request{CallID: fmt.Sprint(i), Code: "a"})
	}
	eventually(t, "settled", func() bool { return n.desk.budget.held.Load() == n.desk.ledger.bytes })
	if kept := n.desk.ledger.order.Len(); kept != 10 || len(n.desk.ledger.calls) != 10 {
		t.Errorf("%d results kept, %d calls known, expected 10", kept, len(n.desk.ledger.calls))
	}
	if r := n.call(t, wire.Request{CallID: "49", Code: "a"}); !r.Joined {
		t.Error("the newest result is gone")
	}
	if r := n.call(t, wire.Request{CallID: "0", Code: "a"}); r.Joined {
		t.Error("the oldest result is still there")
	}
}

func TestWithoutRoomTheAnswerIs429BeforeTheBodyIsRead(t *testing.T) {
	g := newGate()
	defer close(g.open)
	var free atomic.Int64
	free.Store(1 << 40)
	n := start(t, Options{Runner: g, Running: 3, MaxQueued: 2, MaxBytes: 1 << 20, memoryBytes: func() (int64, error) { return free.Load(), nil }})
	for range 5 { // three run, two wait
		go n.send(t, t.Context(), wire.ExecutePath, wire.Request{Code: "a"})
	}
	for range 3 {
		g.await(t)
	}
	eventually(t, "two wait", func() bool { return n.waiting() == 2 })
	refused := func(why string, body io.Reader, length int64) {
		t.Helper()
		q := httptest.NewRequest(http.MethodPost, wire.ExecutePath, body)
		q.ContentLength = length
		w := httptest.NewRecorder()
		n.ServeHTTP(w, q)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d %v %s, expected 429 with Retry-After", why, w.Code, w.Header(), w.Body)
		}
	}
	refused("full queue", strings.NewReader(`{"code":"a"}`), 12)
	refused("bytes", unread{t}, 600<<10)
	free.Store(1)
	eventually(t, "short of memory", func() bool { _, short := n.desk.watch.short(); return short })
	refused("memory", unread{t}, 10)
}

// unread fails the test when it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestLongCallsCannotStarveShortOnes(t *testing.T) {
	g := newGate()
	n := start(t, Options{Runner: g, Running: 4})
	for range 20 {
		go n.send(t, t.Context(), wire.ExecutePath, wire.Request{Code: "long", Limits: wire.Limits{Class: "L"}})
		go n.send(t, t.Context(), wire.ExecutePath, wire.Request{Code: "medium", Limits: wire.Limits{Class: "M"}})
	}
	eventually(t, "tokens of two classes are taken", func() bool { return n.waiting() == 38 })
	ended := make(chan wire.Result)
	go func() { ended <- n.call(t, wire.Request{Code: "short"}) }()
	for g.await(t) != "short" {
	}
	if got := g.order(); len(got) != 3 {
		t.Errorf("started %v, expected one long, one medium and the short call", got)
	}
	close(g.open)
	if r := <-ended; r.Stdout != "short" {
		t.Errorf("got %+v", r)
	}
}

func TestShortCallsUseEveryToken(t *testing.T) {
	g := newGate()
	defer close(g.open)
	n := start(t, Options{Runner: g, Running: 16})
	for range 16 {
		go n.send(t, t.Context(), wire.ExecutePath, wire.Request{Code: "short"})
	}
	for range 16 {
		g.await(t)
	}
}

func TestRolloutsTakeTurns(t *testing.T) {
	g := newGate()
	n := start(t, Options{Runner: g, Running: 3})
	for range 3 {
		go n.send(t, t.Context(), wire.ExecutePath, wire.Request{Code: "holder", RolloutID: "h"})
		g.await(t)
	}
	post := func(rollout string) {
		before := n.waiting()
		go n.send(t, t.Context(), wire.ExecutePath, wire.Request{Code: rollout, RolloutID: rollout})
		eventually(t, "it waits", func() bool { return n.waiting() == before+1 })
	}
	for range 40 {
		post("greedy")
	}
	post("modest")
	close(g.open)
	for range 41 {
		g.await(t)
	}
	if at := slices.Index(g.order(), "modest"); at > 3+3 { // after the holders, at most one greedy call a token goes first
		t.Errorf("the rollout with one call came %dth behind one with 40", at-2)
	}
}

func TestCancellingEndsACallWhereverItIs(t *testing.T) {
	g := newGate()
	defer close(g.open)
	n := start(t, Options{Runner: g, Running: 3})
	results := make(chan wire.Result, 4)
	for i := range 4 {
		go func() { results <- n.call(t, wire.Request{CallID: fmt.Sprintf("a/%d", i), Code: "a"}) }()
		if i < 3 {
			g.await(t)
		}
	}
	eventually(t, "one waits", func() bool { return n.waiting() == 1 })
	for _, id := range []string{"a/3", "a/0"} {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, n.url+wire.CallPath+id, nil)
		r, err := http.DefaultClient.Do(q)
		if err != nil || r.StatusCode != http.StatusNoContent {
			t.Fatalf("cancel %s: %v %v", id, r, err)
		}
		if got := <-results; got.Status != wire.Cancelled || got.CallID != id || got.Retryable {
			t.Errorf("%s ended as %+v, expected cancelled", id, got)
		}
	}
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, n.url+wire.CallPath+"nobody", nil)
	if r, err := http.DefaultClient.Do(q); err != nil || r.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown id: %v %v, expected 404", r, err)
	}
}

func TestACallNobodyWaitsForIsKilledUnlessItsClientComesBack(t *testing.T) {
	g := newGate()
	n := start(t, Options{Runner: g, Grace: time.Hour})
	gone, leave := context.WithCancel(t.Context())
	go n.send(t, gone, wire.ExecutePath, wire.Request{CallID: "x", Code: "a"})
	g.await(t)
	leave()
	eventually(t, "nobody waits", func() bool {
		n.desk.mu.Lock()
		defer n.desk.mu.Unlock()
		return n.desk.ledger.calls[nativeKey("x")].grace != nil
	})
	back := make(chan wire.Result)
	go func() { back <- n.call(t, wire.Request{CallID: "x", Code: "a"}) }()
	eventually(t, "it is joined", func() bool {
		n.desk.mu.Lock()
		defer n.desk.mu.Unlock()
		return n.desk.ledger.calls[nativeKey("x")].waiters == 1
	})
	close(g.open)
	if r := <-back; !r.Joined || r.Stdout != "a" || len(g.order()) != 1 {
		t.Errorf("got %+v after %v, expected to join the one run", r, g.order())
	}

	g = newGate()
	defer close(g.open)
	n = start(t, Options{Runner: g, Grace: time.Millisecond})
	gone, leave = context.WithCancel(t.Context())
	go n.send(t, gone, wire.ExecutePath, wire.Request{CallID: "x", Code: "a"})
	g.await(t)
	leave()
	eventually(t, "it is killed", func() bool {
		n.desk.mu.Lock()
		defer n.desk.mu.Unlock()
		return n.desk.running == 0
	})
}

func TestADeadlineBoundsQueueingAndRunning(t *testing.T) {
	g := newGate()
	defer close(g.open)
	n := start(t, Options{Runner: g, Running: 3})
	if r := n.call(t, wire.Request{Code: "a", DeadlineMs: 20}); r.Status != wire.Cancelled || r.Retryable {
		t.Errorf("while running: %+v, expected cancelled for good", r)
	}
	for range 3 {
		go n.send(t, t.Context(), wire.ExecutePath, wire.Request{Code: "a"})
	}
	eventually(t, "all tokens are taken", func() bool { return len(g.order()) == 4 })
	n.desk.mu.Lock()
	n.desk.pace = 0 // no estimate: it may wait
	n.desk.mu.Unlock()
	if r := n.call(t, wire.Request{Code: "a", DeadlineMs: 20}); r.Status != wire.Rejected || !r.Retryable || r.Timing.QueueMs < 10 || r.Attempts != 0 {
		t.Errorf("in the queue: %+v, expected rejected unstarted", r)
	}
}

func TestAFailedSandboxIsTriedAgainAndThenNamed(t *testing.T) {
	var runs atomic.Int64
	failing := int64(2)
	n := start(t, Options{Runner: runnerFunc(func(context.Context, sandbox.Call) (sandbox.Result, error) {
		if runs.Add(1) <= failing {
			return sandbox.Result{Stdout: "half"}, fmt.Errorf("%w: zygote died", sandbox.ErrInfrastructure)
		}
		return sandbox.Result{Status: sandbox.Error, ExitCode: 1, Stderr: "e"}, nil
	})})
	if r := n.call(t, wire.Request{Code: "a"}); r.Status != "error" || r.Attempts != 3 || r.Retryable || r.Stderr != "e" {
		t.Errorf("got %+v, expected the program's error at the third attempt", r)
	}
	runs.Store(0)
	failing = 100
	if r := n.call(t, wire.Request{CallID: "k", Code: "a"}); r.Status != wire.InfraError || !r.Retryable || !strings.Contains(r.Reason, "zygote died") || r.Stdout != "" {
		t.Errorf("got %+v, expected infra_error", r)
	}
	failing = 0
	if r := n.call(t, wire.Request{CallID: "k", Code: "a"}); r.Status != "error" || r.Joined {
		t.Errorf("the same id after a failure: %+v, expected a new run", r)
	}
}

func TestDrainingEndsRunningCallsAndRefusesTheRest(t *testing.T) {
	g := newGate()
	n := start(t, Options{Runner: g, Running: 3})
	results := make(chan wire.Result, 5)
	for range 5 {
		go func() { results <- n.call(t, wire.Request{Code: "a"}) }()
	}
	eventually(t, "three run, two wait", func() bool { return len(g.order()) == 3 && n.waiting() == 2 })
	drained := make(chan error)
	go func() { drained <- n.Drain(context.WithoutCancel(t.Context())) }()
	for range 2 {
		if r := <-results; r.Status != wire.Rejected || !r.Retryable {
			t.Errorf("a waiting call ended as %+v, expected rejected, to be sent elsewhere", r)
		}
	}
	if code, _, h := n.send(t, t.Context(), wire.ExecutePath, wire.Request{Code: "a"}); code != http.StatusServiceUnavailable || h.Get("Retry-After") == "" {
		t.Errorf("a new call got %d, expected 503 with Retry-After", code)
	}
	if r, err := http.Get(n.url + "/readyz"); err != nil || r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("readyz: %v %v, expected 503", r, err)
	}
	if r, err := http.Get(n.url + "/healthz"); err != nil || r.StatusCode != http.StatusNoContent {
		t.Errorf("healthz: %v %v, expected 204", r, err)
	}
	select {
	case err := <-drained:
		t.Fatalf("drained (%v) while calls run", err)
	default:
	}
	close(g.open)
	for range 3 {
		if r := <-results; r.Status != "success" {
			t.Errorf("a running call ended as %+v", r)
		}
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	g = newGate()
	n = start(t, Options{Runner: g})
	go func() { results <- n.call(t, wire.Request{Code: "a"}) }()
	g.await(t)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.Drain(now); !errors.Is(err, context.Canceled) {
		t.Errorf("draining without patience gave %v", err)
	}
	if r := <-results; r.Status != wire.Cancelled || !r.Retryable {
		t.Errorf("a call killed by draining ended as %+v, expected cancelled, to be sent elsewhere", r)
	}
}

func TestABatchStreamsResultsAsCallsEnd(t *testing.T) {
	release := make(chan struct{})
	n := start(t, Options{Runner: runnerFunc(func(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
		if c.Code == "slow" {
			<-release
		}
		return sandbox.Result{Status: sandbox.Success, Stdout: c.Code}, nil
	})})
	body, _ := json.Marshal(wire.Batch{Calls: []wire.Request{{CallID: "1", Code: "slow"}, {CallID: "2", Code: "fast"}}})
	r, err := http.Post(n.url+wire.BatchPath, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := json.NewDecoder(r.Body)
	var first, second, none wire.Result
	if err := lines.Decode(&first); err != nil || first.CallID != "2" || first.Stdout != "fast" {
		t.Errorf("first %+v, %v, expected the call that ended", first, err)
	}
	close(release)
	if err := lines.Decode(&second); err != nil || second.CallID != "1" {
		t.Errorf("second %+v, %v", second, err)
	}
	if err := lines.Decode(&none); !errors.Is(err, io.EOF) {
		t.Errorf("a third line: %+v %v", none, err)
	}
}

func TestRequestsThatCannotBeMeantAreNamed(t *testing.T) {
	n := start(t, Options{Runner: newGate(), MaxBody: 2000})
	for body, want := range map[string]string{
		`{"code":"a","limit":{}}`:                                  "unknown field",
		`{"code":"a"} 1`:                                           "more than one",
		`{"code":"a","limits":{"class":"XL"}}`:                     "expected S, M or L",
		`{"code":"a","limits":{"class":"S","cpu_ms":6000}}`:        "at most 5s",
		`{"code":"a","limits":{"cpu_ms":61000}}`:                   "at most 1m0s",
		`{"code":"a","limits":{"memory_mb":1}}`:                    "MemoryMB",
		`{"code":"a","deadline_ms":-1}`:                            "deadline_ms",
		`{"call_id":"` + strings.Repeat("x", 257) + `","code":""}`: "at most 256",
		``: "no request",
	} {
		code, answer, _ := n.send(t, t.Context(), wire.ExecutePath, body)
		if code != http.StatusBadRequest || !strings.Contains(string(answer), want) {
			t.Errorf("%.60s got %d %s, expected 400 with %q", body, code, answer, want)
		}
	}
	if code, _, _ := n.send(t, t.Context(), wire.ExecutePath, `{"code":"`+strings.Repeat("x", 3000)+`"}`); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body got %d, expected 413", code)
	}
	if held := n.desk.budget.held.Load(); held != 0 {
		t.Errorf("%d bytes are still charged", held)
	}
}

func TestMetricsTellQueueingFromRunning(t *testing.T) {
	n := start(t, Options{Runner: runnerFunc(func(context.Context, sandbox.Call) (sandbox.Result, error) {
		return sandbox.Result{Status: sandbox.Success, CPU: 30 * time.Millisecond, StdoutTruncated: true}, nil
	}), Tier: sandbox.TierB})
	n.call(t, wire.Request{Code: "a"})
	r, err := http.Get(n.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	for _, want := range []string{
		`restar_sandbox_calls_total{class="S",status="success"} 1`, `restar_sandbox_queue_seconds_count{class="S"} 1`, `restar_sandbox_run_seconds_count{class="S"} 1`,
		`restar_sandbox_cpu_seconds_sum{class="S"} 0.03`, `restar_sandbox_truncated_total{stream="stdout"} 1`, `restar_sandbox_isolation{tier="B"} 1`, `restar_sandbox_ready 1`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func TestACallIsASpanOfItsCallersTrace(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	n := start(t, Options{Tracer: tracer, Runner: runnerFunc(func(context.Context, sandbox.Call) (sandbox.Result, error) {
		return sandbox.Result{Status: sandbox.Timeout}, nil
	})})
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+wire.ExecutePath, strings.NewReader(`{"call_id":"c","rollout_id":"r","code":"a"}`))
	q.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if r, err := http.DefaultClient.Do(q); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", r, err)
	}
	ended := spans.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans, expected 1", len(ended))
	}
	s := ended[0]
	if s.Name() != "sandbox.call" || s.SpanContext().TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" || s.Parent().SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("span %s of trace %s below %s", s.Name(), s.SpanContext().TraceID(), s.Parent().SpanID())
	}
	found := map[string]string{}
	for _, a := range s.Attributes() {
		found[string(a.Key)] = a.Value.Emit()
	}
	if found["restar.call_id"] != "c" || found["restar.rollout_id"] != "r" || found["restar.status"] != "timeout" || found["restar.class"] != "S" || found["restar.queue_ms"] == "" {
		t.Errorf("attributes %v", found)
	}
}

func TestABodyThatBreaksOffIsNotCharged(t *testing.T) {
	n := start(t, Options{Runner: newGate()})
	r, w := io.Pipe()
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+wire.ExecutePath, r)
	q.ContentLength = 1 << 20
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if r, err := http.DefaultClient.Do(q); err == nil {
			r.Body.Close()
		}
	}()
	eventually(t, "the body is charged", func() bool { return n.desk.budget.held.Load() > 1<<20 })
	w.CloseWithError(errors.New("gone"))
	<-ended
	eventually(t, "and given back", func() bool { return n.desk.budget.held.Load() == 0 })
}
