package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sessions of a pool for tests, whose cells have a second of CPU.
func openSession(t *testing.T, p *Pool, opt SessionOptions) Session {
	t.Helper()
	opt.ID = t.Name()
	s, err := p.Open(deadline(t), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func runCell(t *testing.T, s Session, code string) Result {
	t.Helper()
	r, err := s.Run(deadline(t), Call{ID: "cell", Code: code})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASessionKeepsItsNamespaceFromCellToCell(t *testing.T) {
	p := startPool(t, Options{Preload: Lite(), Zygotes: 1})
	s := openSession(t, p, SessionOptions{Seed: 3})
	for i, c := range []struct {
		code, stdin, stdout, stderr string
		status                      Status
		exit                        int
	}{
		{code: "x = 20\ndef f(a):\n    return a / 0", status: Success},
		{code: "x += 1\nx * 2", stdout: "42\n", status: Success},
		{code: "y = 1\nf(x)", stderr: "ZeroDivisionError at line 2: division by zero\n  f(x)\n", status: Error, exit: 1},
		{code: "x, y", stdout: "(21, 1)\n", status: Success},
		{code: "for i", stderr: "SyntaxError at line 1: invalid syntax (<unknown>, line 1)\n  for i\n", status: Error, exit: 1},
		{code: "return 5", stderr: "SyntaxError at line 1: 'return' outside function (<unknown>, line 1)\n  return 5\n", status: Error, exit: 1},
		{code: "input() + '!'", stdin: "a\nleft over\n", stdout: "'a!'\n", status: Success},
		{code: "input()", stderr: "EOFError at line 1: EOF when reading a line\n  input()\n", status: Error, exit: 1},
		{code: "open('/tmp/kept', 'w').write('z')\nimport sys\nsys.exit(3)", status: Error, exit: 3},
		{code: "open('/tmp/kept').read() + str(x)", stdout: "'z21'\n", status: Success},
	} {
		r, err := s.Run(deadline(t), Call{ID: fmt.Sprint(i), Code: c.code, Stdin: c.stdin})
		if err != nil || r.Status != c.status || r.ExitCode != c.exit || r.Stdout != c.stdout || r.Stderr != c.stderr || r.SessionEnded {
			t.Errorf("cell %d: %+v, %v\nexpected %+v", i, r, err, c)
		}
	}
	other := openSession(t, p, SessionOptions{})
	if r := runCell(t, other, "x"); !strings.HasPrefix(r.Stderr, "NameError") {
		t.Errorf("another session sees %+v", r)
	}
	if r := runCell(t, other, "import os\nos.listdir('/tmp')"); r.Stdout != "[]\n" {
		t.Errorf("another session has files: %+v", r)
	}
}

func TestASessionOfTheSameCellsGivesTheSameText(t *testing.T) {
	p := startPool(t, Options{Preload: Lite(), Zygotes: 1})
	play := func(seed uint64) (text string) {
		s := openSession(t, p, SessionOptions{Seed: seed})
		for range 3 {
			text += runCell(t, s, world).Stdout
		}
		return text
	}
	first := play(5)
	if again := play(5); again != first || first == "" {
		t.Errorf("two sessions differ:\n%s\n%s", first, again)
	}
	if play(6) == first {
		t.Error("seeds 5 and 6 give the same text")
	}
}

func TestAKilledCellEndsItsSession(t *testing.T) {
	p := startPool(t, Options{Preload: Lite(), Zygotes: 1})
	for _, c := range []struct {
		name, code string
		limits     Limits
		status     Status
	}{
		{"CPU", "print('a')\nwhile True: pass", Limits{CPU: 300 * time.Millisecond}, Timeout},
		{"wall", "import time\nprint('a')\ntime.sleep(1000)", Limits{Wall: 300 * time.Millisecond}, Timeout},
		{"flood", "print('a')\nwhile True: print('x' * 10000)", Limits{}, OutputLimit},
		{"signal", "import os\nprint('a')\nos.kill(os.getpid(), 11)", Limits{}, Killed},
		{"os._exit", "import os\nprint('a')\nos._exit(7)", Limits{}, Error},
		{"os._exit(0)", "import os\nprint('a')\nos._exit(0)", Limits{}, Success},
		{"exec", "import os\nprint('a')\nos.execv('/usr/bin/true', ['true'])", Limits{}, Success},
		{"channel closed", "import os\nprint('a')\nos.close(3)", Limits{}, Success},
		{"channel written", "import os\nprint('a')\nos.write(3, b'\\0' * 17)\nwhile True: pass", Limits{}, Killed},
	} {
		s := openSession(t, p, SessionOptions{})
		runCell(t, s, "kept = 1")
		r, err := s.Run(deadline(t), Call{ID: c.name, Code: c.code, Limits: c.limits})
		if err != nil || r.Status != c.status || !r.SessionEnded || !strings.HasPrefix(r.Stdout, "a\n") {
			t.Errorf("%s: got %s, ended %v, stdout %.20q, stderr %.200q, %v, expected %s and the end", c.name, r.Status, r.SessionEnded, r.Stdout, r.Stderr, err, c.status)
		}
		if _, err := s.Run(deadline(t), Call{Code: "kept"}); !errors.Is(err, ErrSessionEnded) || errors.Is(err, ErrInfrastructure) {
			t.Errorf("%s: a later cell got %v, expected ErrSessionEnded", c.name, err)
		}
	}
	if n := p.Status().Sessions; n != 0 {
		t.Errorf("%d sessions are open after their ends", n)
	}
}

// Threads and children live on, but nothing of a session runs between its cells.
func TestNothingOfASessionRunsBetweenCells(t *testing.T) {
	p := startPool(t, Options{Preload: Lite(), Zygotes: 1})
	s := openSession(t, p, SessionOptions{}).(*session)
	r := runCell(t, s, `
import os, sys, threading, time
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        sys.stdout.write('late\n')
        time.sleep(0)
threading.Thread(target=tick, daemon=True).start()
while ticks < 3: time.sleep(0.001)
seen, written = os.pipe()
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        os.write(1, b'child\n')
        os.write(written, b'x')
        while True:
            try: os.write(1, b'child\n')
            except OSError: pass
for _ in range(3): os.read(seen, 1)
threading.Thread(target=tick).start()
`)
	if r.Status != Success || !strings.Contains(r.Stdout, "late\n") || !strings.Contains(r.Stdout, "child\n") {
		t.Fatalf("got %s, %.100q, %q", r.Status, r.Stdout, r.Stderr)
	}
	for _, pid := range s.meter.members() {
		if _, held := stoppedState(pid); !held {
			t.Errorf("process %d runs between cells", pid)
		}
	}
	used := s.meter.read().cpu
	time.Sleep(300 * time.Millisecond)
	if later := s.meter.read().cpu; later > used {
		t.Errorf("the session used %v of CPU between cells", later-used)
	}
	r = runCell(t, s, "a = ticks\nwhile ticks == a: time.sleep(0)\n'they went on'")
	if r.Status != Success || !strings.Contains(r.Stdout, "'they went on'") {
		t.Errorf("got %+v", r)
	}
}

func TestTheEndOfASessionLeavesNothing(t *testing.T) {
	p := startPool(t, Options{Preload: Lite(), Zygotes: 1, Warm: 1, MaxSessions: 2})
	fds := settledFiles(t, p)
	for i := range 20 {
		s := openSession(t, p, SessionOptions{})
		runCell(t, s, "import os, subprocess\nif os.fork() == 0: os.setsid()\nsubprocess.Popen(['sleep', '31337'])")
		if i%2 == 0 {
			s.Close()
		} else if r, err := s.Run(deadline(t), Call{Code: "import os\nos._exit(0)"}); err != nil || !r.SessionEnded {
			t.Errorf("%+v, %v", r, err)
		}
	}
	now := settledFiles(t, p)
	if who := sleepers(); len(who) > 0 {
		t.Errorf("processes %v of sessions survived", who)
	}
	if now != fds {
		t.Errorf("%d descriptors, %d before", now, fds)
	}
	if n := p.Status().Sessions; n != 0 {
		t.Errorf("%d sessions are open", n)
	}
}

func countFiles(t *testing.T) int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestSessionsCountAgainstTheCapacity(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1, MaxSessions: 1, MaxRunning: 1})
	s := openSession(t, p, SessionOptions{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Open(ctx, SessionOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a session beyond the capacity got %v", err)
	}
	if r := run(t, p, "print(1)"); r.Stdout != "1\n" { // an idle one takes no turn from calls
		t.Errorf("got %+v", r)
	}
	s.Close()
	openSession(t, p, SessionOptions{})
}

func TestAnIdleSessionIsClosed(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	s := openSession(t, p, SessionOptions{Idle: 20 * time.Millisecond})
	for p.Status().Sessions > 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := s.Run(deadline(t), Call{Code: "1"}); !errors.Is(err, ErrSessionEnded) || !strings.Contains(err.Error(), "idle") {
		t.Errorf("got %v", err)
	}
}

func TestCancellingACellEndsItsSession(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	s := openSession(t, p, SessionOptions{})
	ctx, cancel := context.WithCancel(deadline(t))
	go func() {
		for p.Status().Running == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := s.Run(ctx, Call{Code: "while True: pass", Limits: Limits{CPU: time.Hour, Wall: time.Hour}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Run(deadline(t), Call{Code: "1"}); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("got %v", err)
	}
}

func TestADeadZygoteLosesItsSessions(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	busy, idle := openSession(t, p, SessionOptions{}), openSession(t, p, SessionOptions{})
	runCell(t, idle, "x = 1")
	var cell sync.WaitGroup
	cell.Go(func() {
		r, err := busy.Run(deadline(t), Call{Code: "import time\ntime.sleep(1000)", Limits: Limits{Wall: time.Hour}})
		if !errors.Is(err, ErrInfrastructure) || r.Status != "" {
			t.Errorf("a running cell got %+v, %v", r, err)
		}
	})
	for p.Status().Running == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := unix.Kill(p.shelves[0].zygote(0).cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cell.Wait()
	if _, err := idle.Run(deadline(t), Call{Code: "x"}); !errors.Is(err, ErrInfrastructure) {
		t.Errorf("an idle session's next cell got %v", err)
	}
	for p.Status().Restarts == 0 {
		time.Sleep(time.Millisecond)
	}
	if r := runCell(t, openSession(t, p, SessionOptions{}), "1 + 1"); r.Stdout != "2\n" {
		t.Errorf("got %+v", r)
	}
}

// The pool closes while sessions open: each is refused or ends, whatever comes first.
func TestASessionOfAClosingPoolEnds(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	var sessions sync.WaitGroup
	for range 4 {
		sessions.Go(func() {
			for {
				s, err := p.Open(deadline(t), SessionOptions{})
				if err != nil {
					if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrInfrastructure) {
						t.Errorf("got %v", err)
					}
					return
				}
				s.Close()
			}
		})
	}
	for p.Status().Totals.Spawns < 8 {
		time.Sleep(time.Millisecond)
	}
	p.Close()
	sessions.Wait()
}
