package sandbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hostileVar names the folder of the case files for a test binary that runs away from its source.
const hostileVar = "SANDBOX_HOSTILE_CASES"

// hostileFiles are the corpus that was handed over, which the sandbox was designed against, and the one invented beside it,
// with the least number of cases expected of each.
var hostileFiles = []struct {
	name  string
	least int
}{{"sandbox_hostile.json", 86}, {"sandbox_invented.json", 60}}

func hostileFolder() string { return cmp.Or(os.Getenv(hostileVar), "testdata") }

type hostileCase struct {
	Name, Class, Code, Stdin string
	Expect                   struct {
		Status            []Status
		StdoutContains    []string `json:"stdout_contains"`
		StdoutNotContains []string `json:"stdout_not_contains"`
		StderrContains    string   `json:"stderr_contains"`
		ExitCode          *int     `json:"exit_code"`
		Truncated         *bool
		MaxWall           float64  `json:"max_wall_s"`
		MustNot           []string `json:"must_not"`
	}
	Then *hostileCase
}

// shortCases stand for their classes in -short.
var shortCases = []string{"hello", "stdin_echo", "exit_code_3", "setsid_daemon", "clone_into_new_namespaces", "limits_of_init", "a_record_through_init", "memory_leaves_with_the_call", "kill_parent", "tcp_loopback", "mem_single_huge",
	"stdout_10mb_then_exit", "etc_passwd_not_host", "spoof_all_fds", "mount_unshare_setns", "tmp_persistence"}

// needs names cases that are about a library.
var needs = map[string]string{"numpy_works": "numpy", "sympy_works": "sympy", "pycache_poison": "numpy"}

func TestHostileProgramsHarmNobody(t *testing.T) {
	h := newHost(t)
	h.runAll(t)
}

func TestHostileProgramsHarmNobodyInTierB(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: the whole package runs in tier B already")
	}
	asNobody(t, "^TestHostileProgramsHarmNobody$")
}

// abstractName is what the cases call an abstract socket of the machine.
const abstractName = "sbx_host_abstract"

// host is what hostile programs must not reach or change.
type host struct {
	pool    *Pool
	hits    atomic.Int64      // connections that reached a listener of the machine
	ports   map[string]string // what marks of the case files stand for
	zygotes []int
	settled int // processes of the pool when no call runs
}

func newHost(t *testing.T) *host {
	opt := Options{Zygotes: 2, Warm: 3, MaxRunning: 4, Preload: Lite(),
		Limits: Limits{CPU: time.Second, Wall: 1500 * time.Millisecond}}
	h := &host{pool: startPool(t, opt), ports: map[string]string{}, settled: 2 * opt.Warm}
	for _, mark := range []string{"@@PORT@@", "@@REDIS@@"} {
		h.ports[mark] = h.listen(t, "tcp", "127.0.0.1:0")
	}
	h.ports[abstractName] = fmt.Sprint(abstractName, os.Getpid()) // another run of the tests has another
	h.listen(t, "unix", "@"+h.ports[abstractName])
	for _, z := range h.pool.shelves[0].living() {
		h.zygotes = append(h.zygotes, z.cmd.Process.Pid)
	}
	return h
}

func (h *host) listen(t *testing.T, network, address string) string {
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.hits.Add(1)
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func (h *host) runAll(t *testing.T) {
	for _, c := range slices.Concat(h.corpus(t)...) {
		if testing.Short() && !slices.Contains(shortCases, c.Name) {
			continue
		}
		t.Run(c.Class+"/"+c.Name, func(t *testing.T) {
			if m := needs[c.Name]; m != "" {
				needModule(t, m)
			}
			h.try(t, c)
		})
	}
}

// corpus reads every case file.
func (h *host) corpus(t *testing.T) (files [][]hostileCase) {
	for _, f := range hostileFiles {
		b, err := os.ReadFile(filepath.Join(hostileFolder(), f.name))
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Cases []hostileCase }
		if err := json.Unmarshal(b, &file); err != nil {
			t.Fatal(err)
		}
		if len(file.Cases) < f.least {
			t.Fatalf("%d cases in %s, expected at least %d", len(file.Cases), f.name, f.least)
		}
		files = append(files, file.Cases)
	}
	return files
}

// try runs one case with an innocent bystander beside it, and its follow-up after it.
func (h *host) try(t *testing.T, c hostileCase) {
	h.settle(t)
	before := thisMachine()
	hits := h.hits.Load()
	var bystander sync.WaitGroup
	bystander.Go(func() {
		r, err := h.pool.Run(deadline(t), Call{ID: "bystander", Code: "import time\ntime.sleep(0.1)\nprint('bystander', sum(range(1000)))"})
		if err != nil || r.Status != Success || r.Stdout != "bystander 499500\n" {
			t.Errorf("the bystander was harmed: %+v, %v", r, err)
		}
	})
	h.check(t, c)
	bystander.Wait()
	if c.Then != nil {
		h.check(t, *c.Then)
	}
	h.settle(t)
	if h.hits.Load() != hits {
		t.Error("a listener of the machine was reached")
	}
	before.kept(t, c)
	if c.Then != nil {
		before.kept(t, *c.Then)
	}
	h.unharmed(t)
}

func (h *host) check(t *testing.T, c hostileCase) {
	call := Call{Code: h.fill(c.Code), Stdin: h.fill(c.Stdin), Seed: 7}
	if needs[c.Name] != "" {
		call.Limits = Limits{CPU: 10 * time.Second, Wall: 15 * time.Second} // it imports a library from disk
	}
	r := runCall(t, h.pool, call)
	e := c.Expect
	wrong := func(format string, args ...any) {
		t.Errorf("%s: %s; got %s, exit %d, signal %d, stdout %.600q, stderr %.200q", c.Name, fmt.Sprintf(format, args...), r.Status, r.ExitCode, r.Signal, r.Stdout, r.Stderr)
	}
	const busy = 10 // times as long as the case says: other work on the machine is not the call's doing
	if e.MaxWall > 0 && r.Wall.Seconds() > busy*e.MaxWall {
		wrong("it ran for %v, expected %v s", r.Wall, e.MaxWall)
	}
	if !slices.Contains(e.Status, r.Status) {
		wrong("status expected one of %v", e.Status)
	}
	for _, s := range e.StdoutContains {
		if !strings.Contains(r.Stdout, s) {
			wrong("stdout lacks %q", s)
		}
	}
	for _, s := range e.StdoutNotContains {
		if strings.Contains(r.Stdout, s) {
			wrong("stdout has %q", s)
		}
	}
	if !strings.Contains(r.Stderr, e.StderrContains) {
		wrong("stderr lacks %q", e.StderrContains)
	}
	if e.ExitCode != nil && r.ExitCode != *e.ExitCode {
		wrong("exit code expected %d", *e.ExitCode)
	}
	if e.Truncated != nil && r.StdoutTruncated != *e.Truncated {
		wrong("truncated is %v", r.StdoutTruncated)
	}
	if keep := h.pool.opt.Limits.OutputKB << 10; len(r.Stdout) > keep || len(r.Stderr) > 3*keep { // replacement runes are longer
		wrong("kept %d and %d bytes of output", len(r.Stdout), len(r.Stderr))
	}
	if slices.Contains(e.MustNot, "seccomp_bypassed") && strings.Contains(r.Stdout, "INT80 2") {
		wrong("the i386 ABI gave the pid")
	}
}

// fill replaces the marks of the case file.
func (h *host) fill(s string) string {
	for mark, port := range h.ports {
		s = strings.ReplaceAll(s, mark, port)
	}
	s = strings.ReplaceAll(s, "@@PAD:1000000@@", strings.Repeat("a", 1000000))
	if f := strings.Split(s, ":"); len(f) == 3 && f[0] == "@@REPEAT" {
		n, _ := strconv.Atoi(strings.TrimSuffix(f[2], "@@"))
		return strings.Repeat(f[1], n)
	}
	return s
}

// settle waits until the pool has exactly the processes of its warm slots, an init and a call each: nothing of an earlier
// call is left.
func (h *host) settle(t *testing.T) {
	t.Helper()
	n := 0
	for end := time.Now().Add(testDeadline); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if n = h.processes(); n == h.settled {
			return
		}
	}
	t.Fatalf("the pool has %d processes, expected %d: a call left some behind", n, h.settled)
}

// processes of the pool without its zygotes.
func (h *host) processes() (n int) {
	for _, z := range h.zygotes {
		n += len(descendants(z)) - 1
	}
	return n
}
