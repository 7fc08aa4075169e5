package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// meter observes the process tree of one call from outside, through the machine's /proc and the seat's cgroup.
type meter struct {
	slot   *slot
	root   int                   // pid on the machine of the call's init, or of a subprocess, 0 until looked up
	base   time.Duration         // what the seat's cgroup had used before
	before time.Duration         // what the tree had used before
	last   map[int]time.Duration // CPU time of each process at the last sample
	summed time.Duration         // CPU time seen by adding up what each process used between samples
}

// sample is the state of a call's tree at one moment.
type sample struct {
	cpu      time.Duration
	wantsCPU bool
	memoryKB int64 // private memory beyond the zygote's
}

func newMeter(sl *slot) *meter {
	m := &meter{slot: sl, last: map[int]time.Duration{}}
	if g := sl.seat.group; g != nil {
		m.base, _ = g.cpuTime()
	}
	return m
}

// rebase makes later samples count from now, for the next cell of a session.
func (m *meter) rebase() {
	m.base, m.before = 0, 0
	_, tree := m.sum()
	m.before, m.base, m.summed = tree, m.group(), 0
}

// read samples the tree. Processes come and go meanwhile; one that is missed is seen next time.
func (m *meter) read() sample {
	s, tree := m.sum()
	s.cpu = max(tree-m.before, m.summed, m.group())
	return s
}

// sum looks at every process, and adds up what those that are there have used in all.
func (m *meter) sum() (s sample, tree time.Duration) {
	init := m.slot.plain == nil
	for i, pid := range m.tree() {
		p, ok := readProcess(pid)
		if !ok {
			continue
		}
		tree += p.own + p.reaped
		m.summed += max(p.own-m.last[pid], 0)
		m.last[pid] = p.own
		if i > 0 || !init {
			s.memoryKB += max(statusKB(pid, "RssAnon")-m.slot.sharedKB(), 0) + statusKB(pid, "RssShmem")
			s.wantsCPU = s.wantsCPU || wantsCPU(pid)
		}
	}
	return s, tree
}

// tree lists the call's processes, its init first where it has one.
func (m *meter) tree() []int {
	if m.root == 0 {
		m.root = pidOf(m.slot.pidfd)
	}
	return descendants(m.root)
}

// members lists the call's processes without its init.
func (m *meter) members() []int {
	pids := m.tree()
	if m.slot.plain == nil && len(pids) > 0 {
		return pids[1:]
	}
	return pids
}

// group is the CPU time by the cgroup's count, which no way of ending hides from.
func (m *meter) group() time.Duration {
	if g := m.slot.seat.group; g != nil {
		if t, ok := g.cpuTime(); ok {
			return t - m.base
		}
	}
	return 0
}

// pidOf is the pid a pidfd refers to, as this process sees it; 0 if it is gone.
func pidOf(pidfd int) int {
	return max(int(keyed(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd), "Pid")), 0)
}

// descendants lists a process and all below it. Orphans of a call are its init's children, so the tree is whole.
func descendants(root int) []int {
	if root == 0 {
		return nil
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		for _, task := range threads(tree[i]) {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", tree[i], task))
			for f := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil {
					tree = append(tree, pid)
				}
			}
		}
	}
	return tree
}

func threads(pid int) []string {
	d, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return names
}

// process is what /proc/PID/stat says: CPU time of the process and of the children it has waited for.
type process struct{ own, reaped time.Duration }

// clockTick is USER_HZ, which is 100 on every architecture Go runs on.
const clockTick = 10 * time.Millisecond

func readProcess(pid int) (process, bool) {
	f := statFields(fmt.Sprintf("/proc/%d/stat", pid))
	if len(f) < 15 {
		return process{}, false
	}
	ticks := func(i int) time.Duration { // field numbers as in proc(5), counted after the name
		n, _ := strconv.ParseInt(f[i-3], 10, 64)
		return time.Duration(n) * clockTick
	}
	return process{own: ticks(14) + ticks(15), reaped: ticks(16) + ticks(17)}, true
}

// wantsCPU reports whether a thread of pid runs, waits for a CPU, or waits for a device.
func wantsCPU(pid int) bool {
	for _, task := range threads(pid) {
		if f := statFields(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task)); len(f) > 0 && (f[0] == "R" || f[0] == "D") {
			return true
		}
	}
	return false
}

// stoppedState reports whether every thread of pid is stopped or has ended; and whether none can run a program's code: a
// thread in the kernel (D) stops before it returns to it once it has been told to.
func stoppedState(pid int) (stopped, held bool) {
	stopped, held = true, true
	for _, task := range threads(pid) {
		if f := statFields(fmt.Sprintf("/proc/%d/task/%s/stat", pid, task)); len(f) > 0 {
			ended := strings.ContainsAny(f[0], "TtZX")
			stopped, held = stopped && ended, held && (ended || f[0] == "D")
		}
	}
	return stopped, held
}

// statFields returns the fields after the name, which may hold anything.
func statFields(path string) []string {
	b, _ := os.ReadFile(path)
	i := strings.LastIndexByte(string(b), ')')
	if i < 0 {
		return nil
	}
	return strings.Fields(string(b[i+1:]))
}

// statusKB reads one size of /proc/PID/status, KiB, 0 if it is not there.
func statusKB(pid int, key string) int64 { return keyed(fmt.Sprintf("/proc/%d/status", pid), key) }
