package sandboxbench

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// account adds up the CPU time of a contestant and everything that it starts.
type account struct {
	dir   string // control group; "" where there are no rights for one
	usage func() (time.Duration, error)
	pid   int // root of the tree, where there is no group
}

// openAccount makes a control group below this process's own.
func openAccount(name string) *account {
	if dir, usage := cpuGroup(); dir != "" {
		dir = filepath.Join(dir, fmt.Sprintf("restar-bench-%d-%s", os.Getpid(), name))
		if os.Mkdir(dir, 0o755) == nil {
			return &account{dir: dir, usage: func() (time.Duration, error) { return usage(dir) }}
		}
	}
	a := &account{}
	a.usage = func() (time.Duration, error) { return treeCPU(a.pid), nil }
	return a
}

// wrap makes a command join the group before it becomes what it is.
func (a *account) wrap(args []string) []string {
	if a.dir == "" {
		return args
	}
	return append([]string{"/bin/sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(a.dir, "cgroup.procs")}, args...)
}

// close kills what is left in the group and removes it. Its last processes take moments to die.
func (a *account) close() {
	const tries, pause = 100, 20 * time.Millisecond
	for range tries {
		if a.dir == "" || removeGroups(a.dir) {
			return
		}
		time.Sleep(pause)
	}
}

// removeGroups kills what is in a group and below, removes it, and tells whether it is gone.
func removeGroups(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true
	}
	for _, e := range entries {
		if e.IsDir() {
			removeGroups(filepath.Join(dir, e.Name()))
		}
	}
	members, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for field := range strings.FieldsSeq(string(members)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return os.Remove(dir) == nil
}

// cpuGroup is this process's control group that accounts CPU time, and how to read one.
func cpuGroup() (dir string, usage func(string) (time.Duration, error)) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", nil
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		sep := 0
		for i, x := range f {
			if x == "-" {
				sep = i
			}
		}
		if sep == 0 || len(f) < sep+4 {
			continue
		}
		switch {
		case f[sep+1] == "cgroup" && hasOption(f[sep+3], "cpuacct"):
			return filepath.Join(f[4], ownGroup("cpuacct")), v1Usage
		case f[sep+1] == "cgroup2" && fileExists(filepath.Join(f[4], "cpu.stat")) && dir == "":
			dir, usage = filepath.Join(f[4], ownGroup("")), v2Usage
		}
	}
	return dir, usage
}

func hasOption(options, name string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == name {
			return true
		}
	}
	return false
}

func fileExists(path string) bool { _, err := os.Stat(path); return err == nil }

// ownGroup is this process's path in a hierarchy; "" names version 2.
func ownGroup(controller string) string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && (parts[1] == "" && controller == "" || controller != "" && hasOption(parts[1], controller)) {
			return parts[2]
		}
	}
	return "/"
}

func v1Usage(dir string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Duration(ns), err
}

func v2Usage(dir string) (time.Duration, error) {
	f, err := os.Open(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), "usage_usec "); ok {
			us, err := strconv.ParseInt(v, 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("%s has no usage_usec", dir)
}

// tick is the unit of the times in /proc/PID/stat: USER_HZ is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// treeCPU adds up a process, its descendants, and the children that they have waited for.
func treeCPU(root int) time.Duration {
	parents, times := map[int]int{}, map[int]time.Duration{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(rest) // from the state, field 3 of proc(5), on
		if len(f) < 15 {
			continue
		}
		parents[pid], _ = strconv.Atoi(f[1])
		for _, x := range f[11:15] { // utime, stime, cutime, cstime
			n, _ := strconv.ParseInt(x, 10, 64)
			times[pid] += time.Duration(n) * tick
		}
	}
	var sum time.Duration
	for pid, t := range times {
		for p := pid; p > 1; p = parents[p] {
			if p == root {
				sum += t
				break
			}
		}
	}
	return sum
}
