package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

// realPool is a small pool of the best tier that this user can have.
func realPool(t *testing.T) *sandbox.Pool {
	t.Helper()
	tier := sandbox.TierB
	if os.Geteuid() == 0 {
		tier = sandbox.TierA
	}
	p, err := sandbox.Start(t.Context(), sandbox.Options{Tier: tier, Zygotes: 1, Warm: 1, MaxRunning: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestASessionKeepsItsStateOverHTTP(t *testing.T) {
	p := realPool(t)
	n := start(t, Options{Runner: p, Sessions: p, Tier: p.Status().Tier})
	open := func(q wire.Session) string {
		code, body, _ := n.send(t, t.Context(), wire.SessionPath, q)
		var s wire.Session
		if err := json.Unmarshal(body, &s); code != http.StatusCreated || err != nil || s.SessionID == "" {
			t.Fatalf("open: %d %s", code, body)
		}
		return s.SessionID
	}
	cell := func(id string, q wire.Request) (int, wire.Result) {
		code, body, _ := n.send(t, t.Context(), wire.SessionPath+"/"+id+"/execute", q)
		var r wire.Result
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return code, r
	}
	a, b := open(wire.Session{Seed: 1}), open(wire.Session{SessionID: "b", Seed: 2})
	for i, id := range []string{a, b} {
		if _, r := cell(id, wire.Request{Code: fmt.Sprintf("x = %d", i)}); r.Status != "success" {
			t.Fatalf("%+v", r)
		}
	}
	q := wire.Request{CallID: "c", Code: "x += 10\nx"}
	if _, r := cell(a, q); r.Stdout != "10\n" {
		t.Errorf("session a: %+v", r)
	}
	if _, r := cell(a, q); r.Stdout != "10\n" || !r.Joined {
		t.Errorf("the same cell sent again: %+v, expected its result and no second run", r)
	}
	if _, r := cell(b, wire.Request{Code: "x"}); r.Stdout != "1\n" {
		t.Errorf("session b: %+v", r)
	}
	if code, body, _ := n.send(t, t.Context(), wire.SessionPath, wire.Session{SessionID: "b"}); code != http.StatusConflict {
		t.Errorf("a taken id: %d %s, expected 409", code, body)
	}
	if _, r := cell(b, wire.Request{Code: "import os\nos._exit(3)"}); !r.SessionEnded || r.ExitCode != 3 {
		t.Errorf("a cell that ends its process: %+v", r)
	}
	c := open(wire.Session{})
	if _, r := cell(c, wire.Request{Code: "while True: pass", DeadlineMs: 300}); r.Status != wire.Cancelled || !r.SessionEnded {
		t.Errorf("a cell that was stopped at its deadline: %+v, expected cancelled and the session's end", r)
	}
	if code, r := cell(c, wire.Request{Code: "1"}); code != http.StatusNotFound {
		t.Errorf("the session of a stopped cell answers %d %+v, expected 404", code, r)
	}
	d, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, n.url+wire.SessionPath+"/"+a, nil)
	if r, err := http.DefaultClient.Do(d); err != nil || r.StatusCode != http.StatusNoContent {
		t.Errorf("close: %v %v", r, err)
	}
	for _, id := range []string{a, b} {
		if code, r := cell(id, wire.Request{Code: "x"}); code != http.StatusNotFound {
			t.Errorf("an ended session answers %d %+v, expected 404", code, r)
		}
	}
	if left := p.Status().Sessions; left != 0 {
		t.Errorf("%d sessions are still open", left)
	}
	open(wire.Session{})
	if err := n.Drain(context.WithoutCancel(t.Context())); err != nil || p.Status().Sessions != 0 {
		t.Errorf("drained with %v, %d sessions open", err, p.Status().Sessions)
	}
}

// The face is code-judge's: a file runs, which echoes nothing, and its own exit code and streams are told.
func TestAFileRunsAsCodeJudgeRunsIt(t *testing.T) {
	p := realPool(t)
	n := start(t, Options{Runner: p})
	for _, c := range []struct{ solution, input, stdout, reason string }{
		{"1 + 1", "", "", ""},
		{"print(input())\n'echo'", "line", "line\n", ""},
		{"if __name__ == '__main__':\n    print('main')", "", "main\n", ""},
		{"for i in range(2):\n    print(i)", "", "0\n1\n", ""},
		{"print('a') # comment", "", "a\n", ""},
		{"import time\nprint('before', flush=True)\nwhile True: pass", "", "before\nSuicide from timeout.\n", "worker_timeout"},
	} {
		if c.reason != "" && testing.Short() {
			continue // waits for the limit
		}
		_, body, _ := n.send(t, t.Context(), "/run", map[string]any{"type": "python", "solution": c.solution, "input": c.input})
		var r judgeResult
		if err := json.Unmarshal(body, &r); err != nil || r.Stdout == nil || *r.Stdout != c.stdout || r.Reason != c.reason || r.RunSuccess != (c.reason == "") {
			t.Errorf("%q gave %s, expected stdout %q and reason %q", c.solution, body, c.stdout, c.reason)
		}
	}
}
