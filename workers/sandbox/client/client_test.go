package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	if os.Getenv(nodeVar) != "" {
		serveNode()
	}
	os.Exit(m.Run())
}

// testDeadline bounds every wait of a test; nothing is asserted about time.
const testDeadline = 2 * time.Minute

type runnerFunc func(ctx context.Context, c sandbox.Call) (sandbox.Result, error)

func (f runnerFunc) Run(ctx context.Context, c sandbox.Call) (sandbox.Result, error) {
	return f(ctx, c)
}

// counter counts runs, and answers with the call's code.
type counter struct{ runs atomic.Int64 }

func (c *counter) Run(_ context.Context, call sandbox.Call) (sandbox.Result, error) {
	c.runs.Add(1)
	return sandbox.Result{Status: sandbox.Success, Stdout: call.Code, CPU: 3 * time.Millisecond, Wall: 5 * time.Millisecond, PeakKB: 7, Tier: sandbox.TierA}, nil
}

// serve starts a node in process; around changes how it answers.
func serve(t *testing.T, r sandbox.Runner, o service.Options, around func(http.Handler) http.Handler) string {
	t.Helper()
	o.Runner, o.Node = r, "node"
	if o.Tier == "" {
		o.Tier = sandbox.TierA
	}
	s, err := service.New(o)
	if err != nil {
		t.Fatal(err)
	}
	var h http.Handler = s
	if around != nil {
		h = around(h)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func dial(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
	t.Cleanup(cancel)
	return ctx
}

func failing(context.Context, sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{}, fmt.Errorf("%w: zygote died", sandbox.ErrInfrastructure)
}

func TestARemoteResultIsTheLocalOne(t *testing.T) {
	want := sandbox.Result{Status: sandbox.Killed, Signal: 6, ExitCode: 3, Stdout: "é<&\x00", Stderr: "e", StdoutTruncated: true, StderrTruncated: true,
		CPU: 1234 * time.Microsecond, Wall: 5678 * time.Microsecond, PeakKB: 9, Tier: sandbox.TierB,
		StdoutBytes: 77, StderrBytes: 88, InitCPU: 12 * time.Microsecond, Faults: 5, Profile: "lite", SessionEnded: true}
	var got sandbox.Call
	url := serve(t, runnerFunc(func(_ context.Context, c sandbox.Call) (sandbox.Result, error) { got = c; return want, nil }), service.Options{Tier: sandbox.TierB}, nil)
	c := dial(t, Options{Endpoints: []string{url}, Tier: sandbox.TierB, Limits: sandbox.Limits{MemoryMB: 99}})
	sent := sandbox.Call{ID: "k/turn 1/call 0", Code: "c", Stdin: "s", Seed: 1<<64 - 1, Limits: sandbox.Limits{CPU: 3 * time.Second, Wall: 9 * time.Second}}
	r, err := c.Run(deadline(t), sent)
	r.Queue = 0
	if err != nil || r != want {
		t.Errorf("got %+v, %v, expected %+v", r, err, want)
	}
	d := sandbox.DefaultLimits()
	d.CPU, d.Wall, d.MemoryMB = 3*time.Second, 9*time.Second, 99
	if got.Code != sent.Code || got.Stdin != sent.Stdin || got.Seed != sent.Seed || got.Limits != d {
		t.Errorf("the node ran %+v, expected %+v with %+v", got, sent, d)
	}
}

func TestAFailedSandboxIsReplacedByAnotherNode(t *testing.T) {
	var good counter
	sick := serve(t, runnerFunc(failing), service.Options{Attempts: 1}, nil)
	c := dial(t, Options{Endpoints: []string{sick, serve(t, &good, service.Options{}, nil)}})
	for i := range 100 {
		if r, err := c.Run(deadline(t), sandbox.Call{ID: fmt.Sprint(i), Code: fmt.Sprint(i)}); err != nil || r.Stdout != fmt.Sprint(i) {
			t.Fatalf("call %d: %+v, %v", i, r, err)
		}
	}
	if good.runs.Load() != 100 {
		t.Errorf("%d runs on the good node, expected 100", good.runs.Load())
	}
}

func TestEveryFailedCallEndsAsInfrastructureWithinTheBudget(t *testing.T) {
	var sends atomic.Int64
	count := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sends.Add(1); h.ServeHTTP(w, r) })
	}
	var urls []string
	for range 2 {
		urls = append(urls, serve(t, runnerFunc(failing), service.Options{Attempts: 1}, count))
	}
	c := dial(t, Options{Endpoints: urls})
	const calls = 200
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			if r, err := c.Run(deadline(t), sandbox.Call{ID: fmt.Sprint(i)}); !errors.Is(err, sandbox.ErrInfrastructure) || !strings.Contains(err.Error(), "zygote died") {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if n := sends.Load(); n > calls+firstRetries {
		t.Errorf("%d sends of %d calls, expected at most %d retries", n, calls, firstRetries)
	}
}

func TestAnAnswerThatWasLostIsFetchedAndNotRunAgain(t *testing.T) {
	var first, second counter
	var broke atomic.Bool
	lose := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || broke.Swap(true) {
				h.ServeHTTP(w, r)
				return
			}
			h.ServeHTTP(httptest.NewRecorder(), r) // the call completes
			panic(http.ErrAbortHandler)            // and its answer does not arrive
		})
	}
	urls := []string{serve(t, &first, service.Options{}, lose), serve(t, &second, service.Options{}, lose)}
	c := dial(t, Options{Endpoints: urls})
	if r, err := c.Run(deadline(t), sandbox.Call{ID: "x", Code: "a"}); err != nil || r.Stdout != "a" {
		t.Fatalf("%+v, %v", r, err)
	}
	if n := first.runs.Load() + second.runs.Load(); n != 1 || !broke.Load() {
		t.Errorf("%d runs, expected 1", n)
	}
}

// The node that has the answer is short of room when it is asked again; the other one is idle.
func TestALostAnswerIsWaitedForWhereItIs(t *testing.T) {
	var first, second counter
	var sends atomic.Int64
	lose := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch sends.Add(1) {
			case 1:
				h.ServeHTTP(httptest.NewRecorder(), r) // the call completes
				panic(http.ErrAbortHandler)            // and its answer does not arrive
			case 2, 3:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			default:
				h.ServeHTTP(w, r)
			}
		})
	}
	c := dial(t, Options{Endpoints: []string{serve(t, &first, service.Options{}, lose), serve(t, &second, service.Options{}, lose)}})
	if r, err := c.Run(deadline(t), sandbox.Call{ID: "x", Code: "a"}); err != nil || r.Stdout != "a" {
		t.Fatalf("%+v, %v", r, err)
	}
	if n := first.runs.Load() + second.runs.Load(); n != 1 || sends.Load() != 4 {
		t.Errorf("%d runs in %d sends, expected 1 in 4", n, sends.Load())
	}
}

func TestWhatAProgramDidIsFinal(t *testing.T) {
	for _, status := range []sandbox.Status{sandbox.Error, sandbox.Timeout, sandbox.OOM, sandbox.Killed, sandbox.OutputLimit} {
		var runs atomic.Int64
		c := dial(t, Options{Endpoints: []string{serve(t, runnerFunc(func(context.Context, sandbox.Call) (sandbox.Result, error) {
			runs.Add(1)
			return sandbox.Result{Status: status, ExitCode: 1}, nil
		}), service.Options{}, nil)}})
		if r, err := c.Run(deadline(t), sandbox.Call{}); err != nil || r.Status != status || runs.Load() != 1 {
			t.Errorf("%s: %+v, %v after %d runs", status, r, err, runs.Load())
		}
	}
}

func TestANodeThatAsksForRestIsLeftAlone(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		var asked atomic.Int64
		var good counter
		full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(code)
		}))
		t.Cleanup(full.Close)
		c := dial(t, Options{Endpoints: []string{full.URL, serve(t, &good, service.Options{}, nil)}, Attempts: 1}) // a refusal is no attempt
		for i := range 50 {
			if _, err := c.Run(deadline(t), sandbox.Call{ID: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if asked.Load() > 1 || good.runs.Load() != 50 {
			t.Errorf("%d: the full node was asked %d times, the other ran %d, expected at most 1 and 50", code, asked.Load(), good.runs.Load())
		}
	}
}

func TestACallWaitsForAFullNode(t *testing.T) {
	var good counter
	var refused atomic.Int64
	c := dial(t, Options{Endpoints: []string{serve(t, &good, service.Options{}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refused.Add(1) <= 3 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			h.ServeHTTP(w, r)
		})
	})}})
	if r, err := c.Run(deadline(t), sandbox.Call{Code: "a"}); err != nil || r.Stdout != "a" || good.runs.Load() != 1 {
		t.Errorf("%+v, %v after %d runs", r, err, good.runs.Load())
	}
}

func TestWithoutAnyNodeEveryCallEnds(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	c := dial(t, Options{Endpoints: []string{closed.URL}, Patience: 50 * time.Millisecond, InFlight: 4})
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			if _, err := c.Run(deadline(t), sandbox.Call{ID: fmt.Sprint(i)}); !errors.Is(err, sandbox.ErrInfrastructure) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.Await(ctx); !errors.Is(err, sandbox.ErrInfrastructure) {
		t.Errorf("await: %v", err)
	}
}

func TestCancellingTheCallerCancelsTheCall(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	c := dial(t, Options{Endpoints: []string{serve(t, runnerFunc(func(ctx context.Context, _ sandbox.Call) (sandbox.Result, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return sandbox.Result{}, ctx.Err()
	}), service.Options{Grace: time.Millisecond}, nil)}, InFlight: 1})
	ctx, cancel := context.WithCancel(deadline(t))
	got := make(chan error, 2)
	go func() { _, err := c.Run(ctx, sandbox.Call{}); got <- err }()
	<-began
	go func() { _, err := c.Run(ctx, sandbox.Call{}); got <- err }() // waits for the connection
	cancel()
	for range 2 {
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	select {
	case <-ended:
	case <-time.After(testDeadline):
		t.Error("the call still runs")
	}
}

func TestLessIsolationThanAskedForIsRefused(t *testing.T) {
	var n counter
	c := dial(t, Options{Endpoints: []string{serve(t, &n, service.Options{Tier: sandbox.TierB}, nil)}})
	_, err := c.Run(deadline(t), sandbox.Call{})
	if err == nil || errors.Is(err, sandbox.ErrInfrastructure) || !strings.Contains(err.Error(), `wants isolation A, this node gives "B"`) || n.runs.Load() != 0 {
		t.Errorf("got %v after %d runs", err, n.runs.Load())
	}
	c = dial(t, Options{Endpoints: []string{serve(t, &n, service.Options{Tier: "insecure"}, nil)}, Tier: sandbox.TierB})
	if _, err := c.Run(deadline(t), sandbox.Call{}); err == nil || n.runs.Load() != 0 {
		t.Errorf("an insecure node: %v after %d runs", err, n.runs.Load())
	}
}

func TestCallsWaitAsRecordsAndTheirNumberIsBounded(t *testing.T) {
	const calls, inFlight = 3000, 16
	var running, most atomic.Int64
	release := make(chan struct{})
	c := dial(t, Options{Endpoints: []string{serve(t, runnerFunc(func(_ context.Context, call sandbox.Call) (sandbox.Result, error) {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release
		running.Add(-1)
		return sandbox.Result{Status: sandbox.Success, Stdout: call.Code}, nil
	}), service.Options{Running: 64}, nil)}, InFlight: inFlight, MaxOutstanding: calls})
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			if r, err := c.Run(deadline(t), sandbox.Call{ID: fmt.Sprint(i), Code: fmt.Sprint(i)}); err != nil || r.Stdout != fmt.Sprint(i) {
				t.Errorf("call %d: %+v, %v", i, r, err)
			}
		})
	}
	for c.waiting.Load() < calls || running.Load() < inFlight {
		time.Sleep(time.Millisecond)
	}
	if _, err := c.Run(deadline(t), sandbox.Call{}); !errors.Is(err, sandbox.ErrInfrastructure) || !strings.Contains(err.Error(), "outstanding") {
		t.Errorf("one more gave %v", err)
	}
	close(release)
	wg.Wait()
	if most.Load() > inFlight {
		t.Errorf("%d calls were on the wire, the limit is %d", most.Load(), inFlight)
	}
}

func TestTheLessBusyOfTwoNodesIsTaken(t *testing.T) {
	b := newBalancer(Options{Endpoints: []string{"a", "b"}, InFlight: 100})
	b.nodes[0].outstanding = 50
	for i := range 50 {
		n, err := b.acquire(t.Context(), hashOf(fmt.Sprint(i)), nil)
		if err != nil || n != b.nodes[1] {
			t.Fatalf("call %d went to %+v, %v", i, n, err)
		}
	}
	b = newBalancer(Options{Endpoints: strings.Split("abcdefgh", ""), InFlight: 1000})
	for i := range 4000 {
		if _, err := b.acquire(t.Context(), hashOf(fmt.Sprint(i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range b.nodes {
		if n.outstanding < 480 || n.outstanding > 520 { // power of two choices keeps the gap to a few; random placement would not
			t.Errorf("node %s has %d of 4000 calls", n.base, n.outstanding)
		}
	}
}

func TestEndpointsAreChecked(t *testing.T) {
	for _, bad := range []string{"", "sandbox:8088", "ftp://x", "http://", "http://x?a=b", "http://u:p@x"} {
		if _, err := New(Options{Endpoints: []string{bad}}); err == nil || !strings.Contains(err.Error(), "base URL") {
			t.Errorf("%q gave %v", bad, err)
		}
	}
	o, err := Options{Endpoints: []string{"http://x/", "http://x", "https://y:1/base/"}}.resolve()
	if err != nil || !slices.Equal(o.Endpoints, []string{"http://x", "https://y:1/base"}) {
		t.Errorf("got %v, %v", o.Endpoints, err)
	}
}
