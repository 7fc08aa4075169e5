package service

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

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
	at := 1
	for ; ; at++ {
		g.open <- struct{}{} // one ends, and so one starts
		if g.await(t) == "modest" {
			break
		}
	}
	if at > 2 { // the two rollouts take turns
		t.Errorf("the rollout with one call came %dth behind one with 40", at)
	}
	close(g.open)
}
