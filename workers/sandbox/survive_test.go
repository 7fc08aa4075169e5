package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakVar asks for more calls, and for figures in .bench/soak-sandbox.json of the module.
const soakVar = "RESTAR_SOAK"

// lasting is what a service holds when no call runs.
type lasting struct {
	Processes int   `json:"processes"`
	Files     int   `json:"fds"`
	Cgroups   int   `json:"cgroups"`
	Mounts    int   `json:"mounts"`
	ServiceKB int64 `json:"service_rss_kb"`
	OwnKB     int64 `json:"service_own_kb"` // of it what the service holds itself
	ZygoteKB  int64 `json:"zygote_rss_kb"`
}

// TestNothingSurvives runs thousands of hostile calls, four at a time, and sessions among them. Those that wait for a limit
// or a timer are left out.
func TestNothingSurvives(t *testing.T) {
	calls := 2000
	if n, err := strconv.Atoi(os.Getenv(soakVar)); err == nil {
		calls = n
	} else if testing.Short() {
		calls = 200
	}
	h := newHost(t)
	var cases []hostileCase
	for _, c := range slices.Concat(h.corpus(t)...) {
		if !slices.Contains(c.Expect.Status, Timeout) && c.Name != "sigalrm_default" && needs[c.Name] == "" {
			cases = append(cases, c)
		}
	}
	if len(cases) < 120 {
		t.Fatalf("%d cases, expected most of the corpus", len(cases))
	}
	h.hammer(t, cases, 2*len(cases)) // until caches and heaps are as large as they get
	h.settle(t)
	h.seatAll(t)
	before := h.holds(t)
	began := time.Now()
	h.hammer(t, cases, calls)
	took := time.Since(began)
	h.settle(t)
	h.unharmed(t)
	after := h.holds(t)
	if before.Processes != after.Processes || before.Files != after.Files || before.Cgroups != after.Cgroups || before.Mounts != after.Mounts {
		t.Errorf("after %d calls the service holds %+v, before %+v", calls, after, before)
	}
	if more := after.OwnKB - before.OwnKB; more > before.ServiceKB/10 {
		t.Errorf("the service of %d KiB grew by %d KiB in %d calls, expected at most 10%%", before.ServiceKB, more, calls)
	}
	if more := after.ZygoteKB - before.ZygoteKB; more > before.ZygoteKB/10 {
		t.Errorf("the zygotes of %d KiB grew by %d KiB in %d calls, expected at most 10%%", before.ZygoteKB, more, calls)
	}
	s := h.pool.Status()
	t.Logf("%d calls in %v: before %+v, after %+v, lost %d", calls, took.Round(time.Second), before, after, s.Lost)
	if os.Getenv(soakVar) != "" {
		writeFigures(t, map[string]any{"calls": calls, "seconds": took.Seconds(), "tier": s.Tier, "before": before, "after": after, "lost": s.Lost,
			"restarts": s.Restarts})
	}
}

// Every case is a cell too, between innocent cells of another session. What it does to its own session is its own; the other
// one keeps its state, and nothing is left when both are closed.
func TestHostileCellsHarmNobody(t *testing.T) {
	h := newHost(t)
	h.settle(t)
	bystander := openSession(t, h.pool, SessionOptions{Small: true})
	runCell(t, bystander, "kept = 0")
	with := h.processes()
	for i, c := range slices.Concat(h.corpus(t)...) {
		if slices.Contains(c.Expect.Status, Timeout) || c.Name == "sigalrm_default" || needs[c.Name] != "" || testing.Short() && i%10 > 0 {
			continue
		}
		s := openSession(t, h.pool, SessionOptions{Small: true})
		if r, err := s.Run(deadline(t), Call{ID: c.Name, Code: h.fill(c.Code), Stdin: h.fill(c.Stdin)}); err != nil {
			t.Errorf("%s: %+v, %v", c.Name, r, err)
		}
		if r, err := s.Run(deadline(t), Call{Code: "print(1 + 1)"}); err != nil && !errors.Is(err, ErrSessionEnded) || errors.Is(err, ErrInfrastructure) {
			t.Errorf("the cell after %s: %+v, %v", c.Name, r, err)
		}
		s.Close()
		if r := runCell(t, bystander, "kept += 1\nkept"); r.Status != Success {
			t.Fatalf("%s harmed another session: %+v", c.Name, r)
		}
		for h.processes() != with {
			time.Sleep(time.Millisecond)
		}
	}
	bystander.Close()
	h.settle(t)
	h.unharmed(t)
}

// hammer runs so many calls, each the next case, and every fiftieth in a session.
func (h *host) hammer(t *testing.T, cases []hostileCase, calls int) {
	var next atomic.Int64
	var callers sync.WaitGroup
	for range h.pool.opt.MaxRunning {
		callers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= calls || t.Failed() {
					return
				}
				h.strike(t, cases[i%len(cases)], i)
			}
		})
	}
	callers.Wait()
}

// seatAll makes as many seats as there can be slots at one time: those that are warm now, and one for each running call.
func (h *host) seatAll(t *testing.T) {
	var taken []*seat
	for range h.pool.opt.MaxRunning {
		s, err := h.pool.seats.take()
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, s)
	}
	for _, s := range taken {
		h.pool.seats.give(s)
	}
}

func (h *host) strike(t *testing.T, c hostileCase, i int) {
	call := Call{ID: c.Name, Code: h.fill(c.Code), Stdin: h.fill(c.Stdin), Seed: 7}
	if i%50 == 49 {
		s, err := h.pool.Open(t.Context(), SessionOptions{ID: c.Name})
		if err == nil {
			_, err = s.Run(t.Context(), call) // what it does to itself is its own
			s.Close()
		}
		if err != nil {
			t.Errorf("session with %s: %v", c.Name, err)
		}
		return
	}
	r, err := h.pool.Run(t.Context(), call)
	if err != nil || !slices.Contains(c.Expect.Status, r.Status) {
		t.Errorf("call %d, %s: got %s, %v, stderr %.200q, expected one of %v", i, c.Name, r.Status, err, r.Stderr, c.Expect.Status)
	}
}

func (h *host) holds(t *testing.T) lasting {
	l := lasting{Processes: h.processes(), Files: countFiles(t), Mounts: lines("/proc/self/mountinfo")}
	l.ServiceKB, l.OwnKB = memory()
	for _, z := range h.zygotes {
		l.Mounts += lines(fmt.Sprintf("/proc/%d/mountinfo", z))
		l.ZygoteKB += statusKB(z, "RssAnon")
	}
	if g := h.pool.seats.cgroups; g != nil {
		for _, dir := range g.dirs {
			seats, _ := filepath.Glob(dir + "/seat-*")
			l.Cgroups += len(seats)
		}
	}
	return l
}

// memory is this process's resident set in KiB, and the part of it that is neither pages of program files, which come and go as
// the kernel reclaims them, nor memory that the Go runtime has free and has not given back yet.
func memory() (resident, own int64) {
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return statusKB(os.Getpid(), "VmRSS"), statusKB(os.Getpid(), "RssAnon") - int64(s.HeapIdle-s.HeapReleased)>>10
}

func lines(path string) int {
	b, _ := os.ReadFile(path)
	return strings.Count(string(b), "\n")
}

func writeFigures(t *testing.T, figures map[string]any) {
	b, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const dir = "../../.bench"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/soak-sandbox.json", append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
