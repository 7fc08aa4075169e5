package service

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

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
		``:                "no request",
		`null`:            `\"code\" is missing`,
		`{"call_id":"a"}`: `\"code\" is missing`,
		`{"code":null}`:   `\"code\" is missing`,
	} {
		code, answer, _ := n.send(t, t.Context(), wire.ExecutePath, body)
		if code != http.StatusBadRequest || !strings.Contains(string(answer), want) {
			t.Errorf("%.60s got %d %s, expected 400 with %q", body, code, answer, want)
		}
	}
	if code, answer, _ := n.send(t, t.Context(), wire.BatchPath, `{"calls":[{"code":""},{"call_id":"b"}]}`); code != http.StatusBadRequest || !strings.Contains(string(answer), `calls[1]: the key \"code\" is missing`) {
		t.Errorf("a batch with a call without a program got %d %s, expected 400 with its place", code, answer)
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
		found[string(a.Key)] = a.Value.String()
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
