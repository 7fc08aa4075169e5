package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupPrefix starts the name of every pool's cgroup; the sweep looks for it.
const cgroupPrefix = "restar-sandbox-"

// cgroups is the pool's own cgroup in each hierarchy it uses, below the process's own. The directories are locked while
// the pool lives, so that another pool's sweep can tell a live one from a stale one, across pid namespaces too.
type cgroups struct {
	v2    bool
	dirs  map[string]string // controller ("unified" in v2) to directory
	order []string          // controllers in the order calls join them
	locks []*os.File
}

// openCgroups makes the pool's cgroups, and sweeps stale ones. An error says what is missing.
func openCgroups() (*cgroups, error) {
	h, err := hierarchies()
	if err != nil {
		return nil, err
	}
	c := &cgroups{v2: h.v2, dirs: map[string]string{}, order: h.order}
	name := cgroupPrefix + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	for _, controller := range h.order {
		if err := c.create(controller, filepath.Join(h.parents[controller], name)); err != nil {
			c.close()
			return nil, err
		}
		sweep(h.parents[controller])
	}
	c.weigh()
	return c, nil
}

func (c *cgroups) create(controller, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("cgroup %s is not writable: %w (run as root, delegate it, or mount it writable: containerd cgroup_writable)", controller, err)
	}
	c.dirs[controller] = dir
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	c.locks = append(c.locks, f)
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	if c.v2 {
		return errors.Join(writeFile(dir, "cgroup.subtree_control", "+memory +pids"), c.withCPU(dir))
	}
	return nil
}

// withCPU passes the cpu controller on where the parent has it.
func (c *cgroups) withCPU(dir string) error {
	if b, _ := os.ReadFile(dir + "/cgroup.controllers"); !slices.Contains(strings.Fields(string(b)), "cpu") {
		return nil
	}
	return writeFile(dir, "cgroup.subtree_control", "+cpu")
}

// close removes the cgroups; every process in them must be dead.
func (c *cgroups) close() {
	for _, controller := range c.order {
		if dir := c.dirs[controller]; dir != "" {
			removeTree(dir)
		}
	}
	for _, f := range c.locks {
		f.Close()
	}
}

// sweep removes the cgroups of pools that are gone, with the processes still in them.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	for _, dir := range dirs {
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			removeTree(dir)
		}
		f.Close()
	}
}

// removeTree kills what is left in a cgroup and its children and removes them. A cgroup stays busy until its last process
// has been reaped, which takes moments.
func removeTree(dir string) {
	children, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	for _, p := range append(children, filepath.Join(dir, "cgroup.procs")) {
		for range 200 {
			killAll(p)
			if err := os.Remove(filepath.Dir(p)); err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func killAll(procs string) {
	b, _ := os.ReadFile(procs)
	for field := range strings.FieldsSeq(string(b)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// hierarchySet says where the pool's cgroups go.
type hierarchySet struct {
	v2      bool
	order   []string
	parents map[string]string
}

// controllers lists what the children of a v2 parent get.
func (h hierarchySet) controllers() []string {
	b, _ := os.ReadFile(h.parents["unified"] + "/cgroup.subtree_control")
	return strings.Fields(string(b))
}

// hierarchies finds the memory and pids controllers (and, in v1, cpuacct and cpu where they can be written).
func hierarchies() (hierarchySet, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return hierarchySet{}, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return hierarchySet{}, err
	}
	points, paths := cgroupMounts(string(mounts)), cgroupPaths(string(own))
	if h, ok := unified(points[""], paths[""]); ok {
		return h, nil
	}
	h := hierarchySet{parents: map[string]string{}}
	for _, c := range []string{"memory", "pids", "cpuacct", "cpu"} {
		dir := ownDir(points[c], paths[c])
		if optional := c == "cpuacct" || c == "cpu"; points[c] == "" || optional && unix.Access(dir, unix.W_OK) != nil {
			continue
		}
		if c == "cpu" && points["cpu"] == points["cpuacct"] {
			continue // one hierarchy, which the calls join once
		}
		h.order = append(h.order, c)
		h.parents[c] = dir
	}
	if points["memory"] == "" || points["pids"] == "" {
		return h, errors.New("no cgroup with the memory and pids controllers is mounted below /sys/fs/cgroup, or cgroup v2 does not " +
			"delegate them: start in a delegated scope (systemd-run --scope -p Delegate=yes)")
	}
	return h, nil
}

// unified finds the nearest v2 cgroup at or above the own one that may have children with both controllers.
func unified(mount, path string) (hierarchySet, bool) {
	for dir := ownDir(mount, path); mount != "" && strings.HasPrefix(dir, mount); dir = filepath.Dir(dir) {
		if b, _ := os.ReadFile(dir + "/cgroup.controllers"); !hasBoth(string(b)) {
			continue
		}
		_ = writeFile(dir, "cgroup.subtree_control", "+cpu") // missing where it is not delegated: then there is no CPU quota
		if b, _ := os.ReadFile(dir + "/cgroup.subtree_control"); hasBoth(string(b)) || writeFile(dir, "cgroup.subtree_control", "+memory +pids") == nil {
			return hierarchySet{v2: true, order: []string{"unified"}, parents: map[string]string{"unified": dir}}, true
		}
	}
	return hierarchySet{}, false
}

func hasBoth(controllers string) bool {
	f := strings.Fields(controllers)
	return slices.Contains(f, "memory") && slices.Contains(f, "pids")
}

// ownDir is the process's own cgroup below the mount, or the mount where the path is not visible from here.
func ownDir(mount, path string) string {
	dir := filepath.Join(mount, path)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return mount
	}
	return dir
}

// cgroupMounts maps each v1 controller, and "" for v2, to its mount point.
func cgroupMounts(mountinfo string) map[string]string {
	points := map[string]string{}
	for line := range strings.Lines(mountinfo) {
		left, right, _ := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		switch {
		case len(l) < 5 || len(r) < 3:
		case r[0] == "cgroup2":
			points[""] = l[4]
		case r[0] == "cgroup":
			for c := range strings.SplitSeq(r[2], ",") {
				points[c] = l[4]
			}
		}
	}
	return points
}

// cgroupPaths maps each controller, and "" for v2, to the process's own path.
func cgroupPaths(own string) map[string]string {
	paths := map[string]string{}
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			paths[c] = f[2]
		}
	}
	return paths
}

func writeFile(dir, name, value string) error {
	if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o644); err != nil {
		return fmt.Errorf("write %q: %w", value, err)
	}
	return nil
}
