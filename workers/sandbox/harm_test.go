package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// mustNot names what cases must not do. All but these two would be seen in the outcome of the case, of its follow-up or of the
// bystander, in the count of processes, at a listener, or as a zygote's restart.
var mustNot = []string{"survivor_process", "host_oom", "supervisor_restart", "host_listener_hit", "disk_used_over_limit", "other_call_affected", "state_leaks_to_next_call",
	"status_spoofed", "host_pids_exhausted", "control_plane_reachable", "seccomp_bypassed", clockChanged, memoryGrown}

const (
	clockChanged = "host_clock_changed"
	memoryGrown  = "supervisor_memory_growth"
)

// machine is what a case may change without a word: this process's own memory, and the clock of the machine.
type machine struct {
	ownKB int64
	at    time.Time
}

func thisMachine() (m machine) {
	_, m.ownKB = memory()
	m.at = time.Now()
	return m
}

// kept reports what has changed since m.
func (m machine) kept(t *testing.T, c hostileCase) {
	t.Helper()
	for _, what := range c.Expect.MustNot {
		if !slices.Contains(mustNot, what) {
			t.Errorf("nothing here would see %q", what)
		}
	}
	const mostKB, mostDrift = 16 << 10, time.Minute
	_, now := memory()
	if slices.Contains(c.Expect.MustNot, memoryGrown) && now > m.ownKB+mostKB {
		t.Errorf("the service grew from %d to %d KiB", m.ownKB, now)
	}
	if drift := time.Now().Round(0).Sub(m.at.Round(0)) - time.Since(m.at); drift.Abs() > mostDrift { // by the wall and by the monotonic clock
		t.Errorf("the machine's clock was changed by %v", drift)
	}
}

func (h *host) unharmed(t *testing.T) {
	t.Helper()
	if s := h.pool.Status(); s.Restarts != 0 || s.Zygotes != len(h.zygotes) {
		t.Fatalf("zygotes were restarted: %+v", s)
	}
	for _, f := range []string{"/pwn", "/usr/pwn", "/etc/pwn", "/usr/lib/python3/dist-packages/pwn.py", "/dev/pwn", "/tmp/leak_marker", "/tmp/numpy.py"} {
		if _, err := os.Stat(f); err == nil {
			t.Errorf("%s was created on the machine", f)
			os.Remove(f)
		}
	}
	for _, who := range sleepers() {
		t.Errorf("process %s of a call survived", who)
	}
	if g := h.pool.seats.cgroups; g != nil {
		for _, seat := range h.pool.seats.free {
			if b, _ := os.ReadFile(filepath.Join(seat.group.pids, "cgroup.procs")); len(bytes.TrimSpace(b)) > 0 {
				t.Errorf("the cgroup of a free seat has processes %q", b)
			}
		}
	}
}

// sleepers lists processes started with the argument that the cases use.
func sleepers() (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, _ := os.ReadFile(f); bytes.Contains(b, []byte("sleep\x0031337")) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}
