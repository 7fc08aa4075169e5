package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

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
