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

// Of two cores one is the service's and its callers', and a running call needs the other.
func TestSlotsAreForkedAheadOnlyWithCoresThatNoCallNeeds(t *testing.T) {
	for cores, ready := range map[int]int{1: 0, 2: 0, 4: 2} {
		p := poolOf(t, cores, Options{Zygotes: 1, Warm: 2, MaxRunning: 2})
		awaitReady(t, p, 2)
		before := p.Status().Totals.Spawns
		ctx, cancel := context.WithCancel(deadline(t))
		var call sync.WaitGroup
		call.Go(func() {
			_, _ = p.Run(ctx, Call{Code: "import time\ntime.sleep(1000)", Limits: Limits{Wall: time.Hour}})
		})
		for p.Status().Running == 0 || p.Status().Ready == 2 && cores < 4 {
			time.Sleep(time.Millisecond)
		}
		run(t, p, "1") // with the second slot
		run(t, p, "1") // with one of its own, or one forked meanwhile
		awaitReady(t, p, ready)
		if n := p.Status().Totals.Spawns - before; ready == 0 && n != 1 {
			t.Errorf("%d cores: %d slots were forked beside a running call, expected one for the call that found none", cores, n)
		}
		cancel()
		call.Wait()
		awaitReady(t, p, 2)
	}
}

// poolOf starts a pool that takes the machine to have so many cores.
func poolOf(t *testing.T, cores int, opt Options) *Pool {
	t.Helper()
	p := openPool(t, opt)
	p.cores = cores
	if err := p.launch(deadline(t)); err != nil {
		t.Fatal(err)
	}
	return p
}

// openPool is a pool of this user's tier that has not been launched.
func openPool(t *testing.T, opt Options) *Pool {
	t.Helper()
	opt.Tier = testTier()
	opt, err := opt.resolve()
	if err != nil {
		t.Fatal(err)
	}
	p, err := open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// awaitReady waits until so many slots are warm.
func awaitReady(t *testing.T, p *Pool, n int) {
	t.Helper()
	for end := time.Now().Add(testDeadline); p.Status().Ready != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d slots are ready, expected %d", p.Status().Ready, n)
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

// settledFiles counts this process's descriptors, without those of seats, when the one slot is warm. One that is just being
// forked has more for a moment.
func settledFiles(t *testing.T, p *Pool) (least int) {
	for len(tree(p)) != 3 {
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
