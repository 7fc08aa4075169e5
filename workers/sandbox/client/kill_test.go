package client

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service"
)

// nodeVar makes this binary a sandbox node that listens on the address in it.
const nodeVar = "RESTAR_TEST_SANDBOX_NODE"

func tier() sandbox.Tier {
	if os.Geteuid() == 0 {
		return sandbox.TierA
	}
	return sandbox.TierB
}

// serveNode is a whole service process with a real pool. It says "ready" and its address on stdout, and drains at SIGTERM.
func serveNode() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	pool, err := sandbox.Start(ctx, sandbox.Options{Tier: tier(), Zygotes: 2, Warm: 2, MaxRunning: 4})
	fail(err)
	s, err := service.New(service.Options{Runner: pool, Sessions: pool, Running: 4, Tier: tier()})
	fail(err)
	l, err := net.Listen("tcp", os.Getenv(nodeVar))
	fail(err)
	fmt.Println("ready", l.Addr())
	fail(s.Serve(ctx, l, testDeadline))
	pool.Close()
	os.Exit(0)
}

// process is a running node.
type process struct {
	cmd *exec.Cmd
	url string
}

func launch(t *testing.T, addr string) *process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), nodeVar+"="+addr)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if where, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			return &process{cmd, "http://" + where}
		}
	}
	t.Fatalf("no sandbox node: %v", cmd.Wait())
	return nil
}

// children are the processes whose parent is pid.
func children(pid int) []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			found = append(found, id)
		}
	}
	return found
}

// load runs calls until told to stop, each with an output of its own, and counts how each ended.
type load struct {
	wg     sync.WaitGroup
	stop   chan struct{}
	mu     sync.Mutex
	right  int
	broken []string
}

func startLoad(t *testing.T, c *Client, callers int) *load {
	l := &load{stop: make(chan struct{})}
	ctx := deadline(t)
	for k := range callers {
		l.wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				default:
				}
				id := fmt.Sprintf("caller %d call %d", k, i)
				r, err := c.Run(ctx, sandbox.Call{ID: id, Code: fmt.Sprintf("print(%q)", id), Seed: 1})
				l.mu.Lock()
				if err == nil && r.Status == sandbox.Success && r.Stdout == id+"\n" {
					l.right++
				} else {
					l.broken = append(l.broken, fmt.Sprintf("%s: %+v, %v", id, r, err))
				}
				l.mu.Unlock()
			}
		})
	}
	return l
}

// more waits for n more right ends.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	count := func() int { l.mu.Lock(); defer l.mu.Unlock(); return l.right }
	for want, end := count()+n, time.Now().Add(testDeadline); count() < want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no further calls end: %d right, broken %v", count(), l.broken)
		}
	}
}

func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.wg.Wait()
	for _, b := range l.broken {
		t.Error(b)
	}
	t.Logf("%d calls ended once each", l.right)
}

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func TestACallOutlivesKilledZygotesAndWorkers(t *testing.T) {
	n := launch(t, "127.0.0.1:0")
	l := startLoad(t, dial(t, Options{Endpoints: []string{n.url}, Tier: sandbox.TierB, Attempts: 8}), 6)
	l.more(t, 10)
	killed := map[string]int{}
	for range 3 {
		for _, zygote := range children(n.cmd.Process.Pid) {
			for _, worker := range children(zygote) { // the init of a call, or of a slot that waits for one
				kill(worker)
				killed["workers"]++
				l.more(t, 2)
			}
			kill(zygote)
			killed["zygotes"]++
			l.more(t, 4)
		}
	}
	l.end(t)
	if killed["workers"] == 0 || killed["zygotes"] < 3 {
		t.Errorf("killed %v, expected workers and zygotes", killed)
	}
	t.Log("killed ", killed)
}

func TestACallOutlivesAKilledService(t *testing.T) {
	a, b := launch(t, "127.0.0.1:0"), launch(t, "127.0.0.1:0")
	l := startLoad(t, dial(t, Options{Endpoints: []string{a.url, b.url}, Tier: sandbox.TierB, Attempts: 8}), 6)
	for _, n := range []*process{a, b, a} {
		l.more(t, 10)
		kill(n.cmd.Process.Pid)
		_ = n.cmd.Wait()
		l.more(t, 10) // on the other
		again := launch(t, strings.TrimPrefix(n.url, "http://"))
		n.cmd = again.cmd
	}
	l.more(t, 10)
	kill(a.cmd.Process.Pid) // both: calls wait for the first that comes back
	kill(b.cmd.Process.Pid)
	_ = a.cmd.Wait()
	launch(t, strings.TrimPrefix(a.url, "http://"))
	l.more(t, 10)
	l.end(t)
}

func TestACallOutlivesADrainedService(t *testing.T) {
	a, b := launch(t, "127.0.0.1:0"), launch(t, "127.0.0.1:0")
	l := startLoad(t, dial(t, Options{Endpoints: []string{a.url, b.url}, Tier: sandbox.TierB, Attempts: 1}), 6) // draining costs no attempt
	l.more(t, 10)
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("draining ended with %v, expected exit code 0", err)
	}
	l.more(t, 10)
	l.end(t)
}
