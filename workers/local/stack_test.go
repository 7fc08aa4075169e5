package local

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"log/slog"
)

// devserver finds the server for tests, or skips where it is not built.
func devserver(t *testing.T) string {
	t.Helper()
	if bin, err := FindDevserver(); err == nil {
		return bin
	}
	bin, err := filepath.Abs("../../bin/" + devserverName)
	if err != nil || !isProgram(bin) {
		t.Skipf("no %s: run `make build` or set %s to test the local stack", bin, EnvDevserver)
	}
	return bin
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func startStack(t *testing.T, dir string) *Stack {
	t.Helper()
	s, err := Start(t.Context(), Options{Dir: dir, Binary: devserver(t), Progress: func(text string) { t.Log(text) }})
	must(t, err)
	t.Cleanup(func() {
		select {
		case <-s.done:
		default:
			must(t, s.Stop())
		}
	})
	return s
}

func dial(t *testing.T, s *Stack) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.Endpoints().Temporal, Namespace: s.Endpoints().Namespace, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// eventually waits for a condition; the limit only ends a broken test.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// begun counts the attempts of the activity below.
type begun struct{ attempts atomic.Int32 }

// Hang runs until it is cancelled at the first attempt, and returns at the second.
func (b *begun) Hang(ctx context.Context) (int32, error) {
	attempt := activity.GetInfo(ctx).Attempt
	b.attempts.Store(attempt)
	if attempt == 1 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return attempt, nil
}

func hangWorkflow(ctx workflow.Context) (int32, error) {
	var b *begun
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour})
	var attempt int32
	return attempt, workflow.ExecuteActivity(ctx, b.Hang).Get(ctx, &attempt)
}

func TestADeadWorkersActivityIsRetriedAtOnceThoughItsTimeoutIsAnHour(t *testing.T) {
	s := startStack(t, t.TempDir())
	c := dial(t, s)
	path := TokensFile(s.Dir(), "rollout")
	tokens, err := NewTaskTokens(path)
	must(t, err)
	var b begun
	w := worker.New(c, "q", worker.Options{Interceptors: []interceptor.WorkerInterceptor{tokens}, WorkerStopTimeout: time.Millisecond})
	w.RegisterWorkflow(hangWorkflow)
	w.RegisterActivity(&b)
	must(t, w.Start())
	defer w.Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "w", TaskQueue: "q"}, hangWorkflow)
	must(t, err)
	eventually(t, "the first attempt", func() bool { return b.attempts.Load() == 1 })
	n, err := FailOpenActivities(t.Context(), c, path)
	must(t, err)
	if n != 1 {
		t.Fatalf("failed %d activities, want 1", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var attempt int32
	must(t, run.Get(ctx, &attempt))
	if attempt != 2 {
		t.Fatalf("the activity returned at attempt %d, want 2", attempt)
	}
	// The second attempt's token is listed still; its attempt is over.
	if n, err := FailOpenActivities(t.Context(), c, path); err != nil || n != 0 {
		t.Fatalf("failed %d finished activities (%v), want none", n, err)
	}
	if n, err := FailOpenActivities(t.Context(), c, path); err != nil || n != 0 {
		t.Fatalf("a file that was taken gives %d activities (%v)", n, err)
	}
}

func TestKill9OfTheServerBringsItBackOnTheSamePortsWithItsWorkflows(t *testing.T) {
	dir := t.TempDir()
	s := startStack(t, dir)
	c := dial(t, s)
	before := s.Endpoints()
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "kept", TaskQueue: "nobody"}, "Anything")
	must(t, err)
	for range 2 {
		pid := s.Endpoints().Pid
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		eventually(t, "another server", func() bool { return s.Endpoints().Pid != pid })
	}
	after := s.Endpoints()
	before.Pid, after.Pid = 0, 0
	if before != after {
		t.Fatalf("endpoints were %+v and are %+v", before, after)
	}
	eventually(t, "the workflow service", func() bool {
		_, err := c.DescribeWorkflowExecution(t.Context(), "kept", "")
		return err == nil
	})
	resp, err := http.Get(after.UI)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the Web UI answers %s", resp.Status)
	}
}

func TestAFolderKeepsItsPortsAndData(t *testing.T) {
	dir := t.TempDir()
	first := startStack(t, dir)
	a := first.Endpoints()
	must(t, first.Stop())
	second := startStack(t, dir)
	b := second.Endpoints()
	a.Pid, b.Pid = 0, 0
	if a != b {
		t.Fatalf("endpoints were %+v and are %+v", a, b)
	}
}

func TestTwoOwnersOfAFolderAreRefusedAndTheHolderIsNamed(t *testing.T) {
	dir := t.TempDir()
	startStack(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Options{Dir: dir, Binary: devserver(t)})
	wantUserError(t, err, dir, strconv.Itoa(os.Getpid()), "stop that one")
}

func TestAServerStartedByHandInTheFolderIsNamed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "server"), 0o700))
	f, err := lockFile(t.Context(), filepath.Join(dir, "server", "devserver.lock"), dir, func(string) {})
	must(t, err)
	defer f.Close()
	_, err = f.WriteString("12345\n")
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Start(ctx, Options{Dir: dir, Binary: "/bin/true"})
	wantUserError(t, err, dir, "12345")
}

func wantUserError(t *testing.T, err error, parts ...string) {
	t.Helper()
	var u *UserError
	if !errors.As(err, &u) {
		t.Fatalf("error is %v, want one that the user can mend", err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not say %q", err, p)
		}
	}
}

func TestAPortThatAStrangerHoldsIsNamedWithTheFix(t *testing.T) {
	dir := t.TempDir()
	p, err := loadPorts(t.Context(), dir)
	must(t, err)
	again, err := loadPorts(t.Context(), dir)
	must(t, err)
	if p != again {
		t.Fatalf("ports were %v and are %v", p, again)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(p.UI)))
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = loadPorts(ctx, dir)
	wantUserError(t, err, strconv.Itoa(p.UI), "Web UI", filepath.Join(dir, "ports.json"))
}

func TestAServerThatCannotRunIsReportedInItsOwnWords(t *testing.T) {
	dir := t.TempDir()
	fake := filepath.Join(dir, "fake")
	must(t, os.WriteFile(fake, []byte("#!/bin/sh\necho 'no space: free some' >&2\nexit $((76 + 2 * RESTAR_SUPERVISED))\n"), 0o700))
	_, err := Start(t.Context(), Options{Dir: filepath.Join(dir, "data"), Binary: fake})
	wantUserError(t, err, "no space: free some")
	must(t, os.WriteFile(fake, []byte("#!/bin/sh\necho 'panic: index out of range' >&2\nexit 2\n"), 0o700))
	_, err = Start(t.Context(), Options{Dir: filepath.Join(dir, "data"), Binary: fake})
	var user *UserError
	if err == nil || errors.As(err, &user) || !strings.Contains(err.Error(), "panic: index out of range") {
		t.Errorf("a crash is reported as %v, want a fault of the server in its own words", err)
	}
}

func TestAMissingServerSaysHowToBuildIt(t *testing.T) {
	t.Setenv(EnvDevserver, "")
	t.Setenv("PATH", t.TempDir())
	_, err := FindDevserver()
	wantUserError(t, err, "make build")
	t.Setenv(EnvDevserver, "/nowhere/server")
	_, err = FindDevserver()
	wantUserError(t, err, "/nowhere/server")
}
