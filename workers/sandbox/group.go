package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// group is the cgroup of one seat. Calls join it by themselves through descriptors opened here: the kernel checks the
// opener's right to move them.
type group struct {
	v2           bool
	memory, pids string // directories
	events       gauge  // out-of-memory kills
	cpu          gauge  // CPU time used
	bandwidth    string // directory with the CPU quota, "" if there is none
	procs        []int
	ooms         int64 // kills seen so far
	memoryBytes  int64 // limits in force
	maxPids      int
	cores        int
}

func (c *cgroups) group(name string) (*group, error) {
	g := &group{v2: c.v2}
	for _, controller := range c.order {
		dir := filepath.Join(c.dirs[controller], name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // there from an attempt that went on to fail
			g.close()
			return nil, err
		}
		file := filepath.Join(dir, c.entrance())
		fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			g.close()
			return nil, fmt.Errorf("open %s: %w", file, err)
		}
		g.procs = append(g.procs, fd)
		if err := g.use(controller, dir); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// entrance is the file through which a call joins. It has one thread then, which may join a v1 cgroup as a thread: that takes no
// lock of the machine's forks and exits, whose first taker waits for the kernel's grace period, some 15 ms.
func (c *cgroups) entrance() string {
	if c.v2 {
		return "cgroup.procs" // a thread cannot leave the domain of its process
	}
	return "tasks"
}

func (g *group) use(controller, dir string) (err error) {
	switch controller {
	case "unified":
		g.memory, g.pids = dir, dir
		g.quota(dir, "/cpu.max")
		err = errors.Join(g.events.open(dir+"/memory.events"), g.cpu.open(dir+"/cpu.stat"))
	case "memory":
		g.memory = dir
		err = g.events.open(dir + "/memory.oom_control")
	case "pids":
		g.pids = dir
	case "cpuacct":
		g.quota(dir, "/cpu.cfs_quota_us") // where cpu is mounted with it
		err = g.cpu.open(dir + "/cpuacct.usage")
	case "cpu":
		g.quota(dir, "/cpu.cfs_quota_us")
	}
	return err
}

// close gives up the descriptors; the directories are the pool's to remove.
func (g *group) close() {
	closeAll(g.procs)
	g.events.close()
	g.cpu.close()
}

// quota notes where the CPU quota is set, if the kernel has one there.
func (g *group) quota(dir, file string) {
	if _, err := os.Stat(dir + file); err == nil {
		g.bandwidth = dir
	}
}

// groupHeadroom lets a single process reach its own limit first, which it sees as MemoryError: page tables, copied pages
// of the zygote, pipe buffers.
const groupHeadroom = 48 << 20

// apply sets the limits of the seat's next call, and forgets what happened to the one before.
func (g *group) apply(l Limits) error {
	g.oomKills()
	bytes := int64(l.MemoryMB)<<20 + int64(l.TmpKB)<<10 + groupHeadroom
	if bytes != g.memoryBytes {
		if err := g.limitMemory(strconv.FormatInt(bytes, 10)); err != nil {
			return infrastructure("memory cgroup: %w", err)
		}
		g.memoryBytes = bytes
	}
	if l.Pids != g.maxPids {
		if err := writeFile(g.pids, "pids.max", strconv.Itoa(l.Pids)); err != nil {
			return infrastructure("pids cgroup: %w", err)
		}
		g.maxPids = l.Pids
	}
	if l.Cores != g.cores && g.bandwidth != "" {
		if err := g.limitCPU(l.Cores); err != nil {
			return infrastructure("cpu cgroup: %w", err)
		}
		g.cores = l.Cores
	}
	return nil
}

// limitCPU gives the tree so many cores in every tenth of a second, which is the kernel's own period.
func (g *group) limitCPU(cores int) error {
	const period = 100_000 // µs
	if g.v2 {
		return writeFile(g.bandwidth, "cpu.max", fmt.Sprintf("%d %d", cores*period, period))
	}
	return errors.Join(writeFile(g.bandwidth, "cpu.cfs_period_us", strconv.Itoa(period)),
		writeFile(g.bandwidth, "cpu.cfs_quota_us", strconv.Itoa(cores*period)))
}

func (g *group) limitMemory(bytes string) error {
	if !g.v2 {
		// Order matters: memory plus swap may never be the smaller one. Without swap accounting the file is missing.
		_ = writeFile(g.memory, "memory.memsw.limit_in_bytes", "-1")
		if err := writeFile(g.memory, "memory.limit_in_bytes", bytes); err != nil {
			return err
		}
		_ = writeFile(g.memory, "memory.memsw.limit_in_bytes", bytes)
		return nil
	}
	_ = writeFile(g.memory, "memory.swap.max", "0") // missing where the kernel does not count swap
	if err := writeFile(g.memory, "memory.oom.group", "1"); err != nil {
		return err
	}
	return writeFile(g.memory, "memory.max", bytes)
}

// oomKills is the number of out-of-memory kills since it was last asked.
func (g *group) oomKills() int64 {
	n := value(g.events.text(), "oom_kill")
	seen := n - g.ooms
	g.ooms = n
	return seen
}

// joined waits until a process is in the memory and the pids cgroup, which is before it takes its request; false without a group,
// and when it has ended before.
func (g *group) joined(ctx context.Context, ended func() bool) bool {
	if g == nil {
		return false
	}
	for end := time.Now().Add(spawnDeadline); ; {
		if occupied(g.memory) && occupied(g.pids) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Millisecond):
		}
		if ended() || time.Now().After(end) {
			return false
		}
	}
}

func occupied(dir string) bool {
	b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return len(b) > 0
}

// cpuTime is the CPU time the seat's processes have used since the cgroup was made; false without a controller.
func (g *group) cpuTime() (time.Duration, bool) {
	text := g.cpu.text()
	if g.v2 {
		return time.Duration(value(text, "usage_usec")) * time.Microsecond, text != ""
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return time.Duration(n), err == nil
}
