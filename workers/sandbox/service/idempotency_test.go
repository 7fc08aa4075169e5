package service

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

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
