package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// running is a command at work in this process.
type running struct {
	stop context.CancelFunc
	code chan int

	mu  sync.Mutex // guards out
	out bytes.Buffer
}

// Write implements io.Writer.
func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

// begin starts a command; it has ended when the test has.
func begin(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, code: make(chan int, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.code <- execute(ctx, args, r, r)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return r
}

// eventually waits for a condition of a command; the limit only ends a broken test.
func eventually(t *testing.T, what string, r *running, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited two minutes for %s:\n%s", what, r.text())
		}
	}
}

func (r *running) ready(t *testing.T) {
	t.Helper()
	eventually(t, "a stack", r, func() bool { return strings.Contains(r.text(), "ready; Ctrl-C ends it") })
}

func pids(dir string) (p map[string]int) {
	body, err := os.ReadFile(filepath.Join(dir, "pids.json"))
	if err != nil || json.Unmarshal(body, &p) != nil {
		return nil
	}
	return p
}

func TestAStackOutlivesCrashesOfItsProcessesAndItsEndIsToldToThoseWhoJoinedIt(t *testing.T) {
	devserver(t)
	dir := t.TempDir()
	owner := begin(t, "dev", "--dir", dir)
	owner.ready(t)
	for _, name := range []string{"trainer", "rollout", "devserver"} {
		first := 0
		eventually(t, name, owner, func() bool { first = pids(dir)[name]; return first > 0 })
		if err := syscall.Kill(first, syscall.SIGQUIT); err != nil { // the Go runtime prints its stacks and ends with 2
			t.Fatal(err)
		}
		eventually(t, "another "+name, owner, func() bool { p := pids(dir)[name]; return p > 0 && p != first })
	}
	eventually(t, "the server to answer again", owner, func() bool { _, err := os.Stat(filepath.Join(dir, "server", "ready.json")); return err == nil })
	joined := begin(t, "dev", "--dir", dir)
	joined.ready(t)
	select {
	case code := <-owner.code:
		t.Fatalf("the stack ended with exit code %d:\n%s", code, owner.text())
	default:
	}
	owner.stop()
	if code := <-owner.code; code != 130 {
		t.Errorf("the owner's exit code is %d, want 130:\n%s", code, owner.text())
	}
	code := <-joined.code
	wantUserError(t, code, joined.text(), "the stack of "+dir+" ended", "give the same command again")
}
