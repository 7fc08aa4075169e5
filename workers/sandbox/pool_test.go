package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestThousandsOfCallersShareAPool(t *testing.T) {
	callers := 2000
	if testing.Short() {
		callers = 200
	}
	p := startPool(t, Options{MaxRunning: 4})
	var running, most atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				running.Store(int64(p.Status().Running))
				most.Store(max(most.Load(), running.Load()))
				time.Sleep(time.Millisecond)
			}
		}
	}()
	for i := range callers {
		all.Go(func() {
			r, err := p.Run(context.Background(), Call{ID: fmt.Sprint(i), Code: fmt.Sprintf("print(%d * 2)", i)})
			if err != nil || r.Stdout != fmt.Sprintln(2*i) {
				t.Errorf("call %d: %+v, %v", i, r, err)
			}
		})
	}
	all.Wait()
	close(stop)
	if most.Load() > 4 {
		t.Errorf("%d calls ran at once, expected at most 4", most.Load())
	}
	if s := p.Status(); s.Lost != 0 || s.Calls != int64(callers) || s.Running != 0 || s.Queued != 0 {
		t.Errorf("status is %+v, expected every call and none lost", s)
	}
}

func TestADeadZygoteIsReplacedAndItsCallsAreInfrastructureErrors(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 2})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			r, err := p.Run(deadline(t), Call{ID: "victim", Code: "import time\ntime.sleep(1000)", Limits: Limits{Wall: time.Hour}})
			if !errors.Is(err, ErrInfrastructure) || r.Status != "" {
				t.Errorf("got %+v, %v, expected an infrastructure error and no status", r, err)
			}
		})
	}
	for p.Status().Running < 2 || len(tree(p)) < 9 { // the zygote, and pairs for two calls and the warm slots
		time.Sleep(time.Millisecond)
	}
	if err := unix.Kill(p.shelves[0].zygote(0).cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	for p.Status().Restarts == 0 { // until its death is seen, a call may still be given one of its slots
		time.Sleep(time.Millisecond)
	}
	if r := run(t, p, "print('again')"); r.Stdout != "again\n" {
		t.Errorf("got %+v", r)
	}
	if s := p.Status(); s.Restarts < 1 || s.Zygotes != 1 || s.Lost != 2 {
		t.Errorf("status is %+v, expected one zygote, restarted, and two lost calls", s)
	}
}

// Zygotes are killed again and again while calls run and wait: each call ends once, with its own result or with an error that
// says it may be repeated, and nothing of a lost one is left.
func TestKilledZygotesUnderLoadLoseNoCallTwice(t *testing.T) {
	callers, kills := 400, 6
	if testing.Short() {
		callers, kills = 100, 3
	}
	p := startPool(t, Options{Zygotes: 2, Warm: 3, MaxRunning: 4})
	var ended, lost atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for {
				r, err := p.Run(deadline(t), Call{ID: fmt.Sprint(i), Code: fmt.Sprintf("import os, time\nif os.fork() == 0: time.sleep(31337)\ntime.sleep(0.01)\nprint(%d)", i)})
				switch {
				case errors.Is(err, ErrInfrastructure) && r.Status == "":
					lost.Add(1)
					continue // as a client does
				case err != nil || r.Status != Success || r.Stdout != fmt.Sprintln(i):
					t.Errorf("call %d: %+v, %v", i, r, err)
				}
				ended.Add(1)
				return
			}
		})
	}
	for i := range kills {
		for int(ended.Load()) < callers*(i+1)/(kills+2) {
			time.Sleep(time.Millisecond)
		}
		if living := p.shelves[0].living(); len(living) > 0 {
			_ = unix.Kill(living[i%len(living)].cmd.Process.Pid, unix.SIGKILL)
		}
	}
	all.Wait()
	s := p.Status()
	if ended.Load() != int64(callers) || s.Calls != ended.Load() || s.Lost != lost.Load() || lost.Load() == 0 || s.Restarts == 0 || s.Queued+s.Running != 0 {
		t.Errorf("%d calls ended and %d were lost, status %+v, expected %d ended, some lost, both counted", ended.Load(), lost.Load(), s, callers)
	}
	if who := sleepers(); len(who) > 0 {
		t.Errorf("processes %v of calls survived", who)
	}
}

func TestTheImportsOfACallChooseItsZygote(t *testing.T) {
	kinds, libraries := profiles([]string{"math", "numpy", "sympy.core"})
	for code, full := range map[string]bool{"import math": false, "import numpy as np": true, "from sympy import *": true, "x = 'numpy'": true,
		"numpyx = 1": false, "my_numpy": false, "import mpmath": true, "": false, "snumpy, numpy": true} {
		if len(kinds) > 1 && mentions(code, libraries) != full {
			t.Errorf("%q goes to the full zygote: %v, expected %v", code, !full, full)
		}
	}
	if kinds, _ := profiles(Lite()); len(kinds) != 1 || len(kinds[0].preload) != len(Lite()) {
		t.Errorf("a list of standard modules gives %v", kinds)
	}
	needModule(t, "numpy")
	p := startPool(t, Options{Preload: []string{"math", "numpy"}, Zygotes: 1, Warm: 1})
	for code, want := range map[string]string{"import math": Small, "import numpy\nnumpy.ones(2)": Full} {
		if r := run(t, p, code); r.Profile != want || r.Status != Success {
			t.Errorf("%q ran in %q: %+v", code, r.Profile, r)
		}
	}
	if r := run(t, p, "import sys\n'num' + 'py' in sys.modules"); r.Stdout != "False\n" {
		t.Errorf("the lite zygote has numpy: %+v", r)
	}
}

// A layer that goes away while the pool runs is found by the next look, and the zygote gets no more calls.
func TestTheCanariesRunAgainInEveryZygote(t *testing.T) {
	opt, err := Options{Tier: testTier(), Zygotes: 2, Warm: 1}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	var gone atomic.Bool
	p.landlock = func() bool { return !gone.Load() }
	if err := p.launch(deadline(t)); err != nil {
		t.Fatal(err)
	}
	first := p.Status().Preflight
	if first.At.IsZero() || first.Err != nil {
		t.Fatalf("the preflight is %+v", first)
	}
	if err := unix.Kill(p.shelves[0].zygote(0).cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for p.Status().Zygotes < 2 || p.Status().Restarts == 0 {
		time.Sleep(time.Millisecond)
	}
	again := p.Status().Preflight
	if !again.At.After(first.At) || again.Err != nil {
		t.Errorf("after a restart the preflight is %+v, before %+v", again, first)
	}
	gone.Store(true)
	p.recheckAll()
	if s := p.Status(); !errors.Is(s.Preflight.Err, ErrLayer) || !strings.Contains(s.Preflight.Err.Error(), "Landlock") {
		t.Errorf("the preflight without Landlock is %v", s.Preflight.Err)
	}
	for p.Status().Zygotes > 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if r, err := p.Run(ctx, Call{Code: "print(1)"}); err == nil {
		t.Errorf("a call got %+v from a machine with a hole", r)
	}
}

// The profiler interrupts the system calls of every thread.
func TestSignalsToThePoolsProcessLoseNoCall(t *testing.T) {
	p := startPool(t, Options{})
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Skip(err)
	}
	defer pprof.StopCPUProfile()
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			if r, err := p.Run(deadline(t), Call{ID: fmt.Sprint(i), Code: "print(1)"}); err != nil || r.Stdout != "1\n" {
				t.Errorf("call %d: %+v, %v", i, r, err)
			}
		})
	}
	all.Wait()
	if s := p.Status(); s.Restarts != 0 {
		t.Errorf("%d zygotes were restarted", s.Restarts)
	}
}

func TestCancellingEndsAStart(t *testing.T) {
	ctx, cancel := context.WithCancel(deadline(t))
	cancel()
	if p, err := Start(ctx, Options{Tier: testTier()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, expected context.Canceled", p, err)
	}
}

func TestCancellingEndsTheCall(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1, MaxRunning: 1})
	ctx, cancel := context.WithCancel(deadline(t))
	go func() {
		for p.Status().Running == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := p.Run(ctx, Call{Code: "while True: pass", Limits: Limits{CPU: time.Hour, Wall: time.Hour}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected context.Canceled", err)
	}
	if r := run(t, p, "print(1)"); r.Stdout != "1\n" {
		t.Errorf("the pool gave %+v afterwards", r)
	}
}

func TestAClosedPoolRefusesCallsAndLeavesNothing(t *testing.T) {
	p := startPool(t, Options{Zygotes: 2})
	pids := tree(p)
	var dirs []string
	if g := p.seats.cgroups; g != nil {
		for _, d := range g.dirs {
			dirs = append(dirs, d)
		}
	}
	p.Close()
	if _, err := p.Run(deadline(t), Call{Code: "1"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, expected ErrClosed", err)
	}
	for _, pid := range pids {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && strings.Contains(string(b), "python") {
			t.Errorf("process %d is left", pid)
		}
	}
	for _, d := range dirs {
		if _, err := os.Stat(d); err == nil {
			t.Errorf("%s is left", d)
		}
	}
}

func TestAPoolLeaksNoDescriptors(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 1, MaxRunning: 1})
	before := settledFiles(t, p)
	for i := range 50 {
		run(t, p, fmt.Sprint("print(", i, ")"))
	}
	if after := settledFiles(t, p); after != before {
		t.Errorf("%d descriptors after 50 calls, %d before", after, before)
	}
}

// settledFiles counts this process's descriptors, without those of seats, when a slot is warm and another waits to become it.
// A slot that is just being forked has more for a moment.
func settledFiles(t *testing.T, p *Pool) (least int) {
	for len(tree(p)) != 5 {
		time.Sleep(time.Millisecond)
	}
	least = countFiles(t) - seatFiles(p)
	for range 50 {
		time.Sleep(2 * time.Millisecond)
		least = min(least, countFiles(t)-seatFiles(p))
	}
	return least
}

// seatFiles counts the descriptors that seats keep for their next call. There are as many seats as there have been slots at
// one time.
func seatFiles(p *Pool) int {
	p.seats.mu.Lock()
	defer p.seats.mu.Unlock()
	if p.seats.cgroups == nil {
		return 0
	}
	return p.seats.made * (len(p.seats.cgroups.order) + 2) // and what they read
}

func TestAMissingPreloadNamesItsPackage(t *testing.T) {
	_, err := Start(deadline(t), Options{Tier: testTier(), Zygotes: 1, Preload: []string{"math", "no_such_module"}})
	if err == nil || !strings.Contains(err.Error(), `"no_such_module"`) || !strings.Contains(err.Error(), "python3-no-such-module") {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, ErrInfrastructure) {
		t.Errorf("%v: a missing module does not go away by itself", err)
	}
}

func TestAnInterpreterOutsideTheSystemIsRefused(t *testing.T) {
	for _, path := range []string{"/nonexistent/python3", "/proc/self/exe"} {
		if _, err := Start(deadline(t), Options{Python: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestStartFailsClosedAndNamesTheLayer(t *testing.T) {
	for _, c := range []struct {
		without Layers
		tier    Tier
		says    []string
	}{
		{Layers{Seccomp: true}, testTier(), []string{"system call filter (", "no vsock (", "CONFIG_SECCOMP_FILTER"}},
		{Layers{Landlock: true}, testTier(), []string{"Landlock (", "lsm= list"}},
		{Layers{Cgroups: true}, TierA, []string{"tier A", "cgroup", "tier B"}},
	} {
		_, err := Start(deadline(t), Options{Tier: c.tier, Zygotes: 1, Warm: 1, Without: c.without})
		if !errors.Is(err, ErrInfrastructure) {
			t.Errorf("without %+v: got %v, expected an infrastructure error", c.without, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("without %+v: %v does not name %q", c.without, err, s)
			}
		}
	}
}

func TestTheTierIsSaid(t *testing.T) {
	p := startPool(t, Options{Tier: TierB, Zygotes: 1, Warm: 1, Without: Layers{Cgroups: true}})
	if r := run(t, p, "1"); r.Tier != TierB || p.Status().Reason == "" {
		t.Errorf("a pool without cgroups says tier %q because %q", r.Tier, p.Status().Reason)
	}
	p = startPool(t, Options{Tier: TierB, Zygotes: 1, Warm: 1})
	if r := run(t, p, "1"); r.Tier != testTier() {
		t.Errorf("tier %q, expected %q: what is accepted is a minimum", r.Tier, testTier())
	}
}

func TestProbeReportsEveryLayer(t *testing.T) {
	r := Probe(deadline(t))
	if r.Err != nil || r.Tier != testTier() || len(r.Layers) != len(canaries)+1 {
		t.Fatalf("got %+v", r)
	}
	for _, l := range r.Layers {
		if !l.OK || l.Fix != "" {
			t.Errorf("layer %+v", l)
		}
	}
}

func TestScientificLibrariesArePreloaded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of a core")
	}
	needModule(t, "scipy.optimize")
	needModule(t, "sympy")
	p := startPool(t, Options{Preload: Scientific(), Zygotes: 1})
	r := run(t, p, "import numpy as np, scipy.optimize as o, sympy as s\nx = s.symbols('x')\nprint(s.solve(x**2 - 5*x + 6, x), np.linalg.det(np.eye(3)), round(o.brentq(lambda v: v*v - 2, 0, 2), 6))")
	if r.Stdout != "[2, 3] 1.0 1.414214\n" {
		t.Errorf("got %+v", r)
	}
	if r := run(t, p, "import numpy as np\nnp.ones(1 << 29)"); r.Status != Error || !strings.Contains(r.Stderr, "MemoryError at line 2") {
		t.Errorf("4 GiB of ones gave %+v", r)
	}
}

func TestAssetsComeFromTheirSources(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc")
	}
	built, err := os.ReadFile("assets/BUILT_WITH")
	if err != nil {
		t.Skip("not in the source folder")
	}
	if v, err := exec.Command(gcc, "-dumpfullversion").Output(); err != nil || strings.TrimSpace(string(v)) != strings.TrimSpace(string(built)) {
		t.Skipf("gcc is %q, the assets were built with %q", v, built)
	}
	dir := t.TempDir()
	if out, err := exec.Command("sh", "assets/build.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"shim.so", "init.elf"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("assets", name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s differs from its sources: run go generate ./workers/sandbox (%v)", name, err)
		}
	}
}
