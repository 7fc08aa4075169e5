package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestIDsAreMappedWhereNoUserIs(t *testing.T) {
	for _, c := range []struct {
		uidMap     string
		host, size int
	}{
		{"         0          0 4294967295\n", 1_000_000, 65536},
		{"         0     524288      65536\n", 32768, 32768}, // a container with a range of its own
	} {
		host, size, err := idRange(c.uidMap)
		if err != nil || host != c.host || size != c.size {
			t.Errorf("%q gives %d+%d, %v, expected %d+%d", c.uidMap, host, size, err, c.host, c.size)
		}
	}
	if _, _, err := idRange("0 1000 1\n"); err == nil || !strings.Contains(err.Error(), "unprivileged user") {
		t.Errorf("a single id gave %v", err)
	}
}

func TestCgroupsAreFoundInEveryLayout(t *testing.T) {
	hybrid := `30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`
	want := map[string]string{"rw": "/sys/fs/cgroup/memory", "cpu": "/sys/fs/cgroup/cpu", "cpuacct": "/sys/fs/cgroup/cpu", "memory": "/sys/fs/cgroup/memory", "": "/sys/fs/cgroup/unified"}
	if got := cgroupMounts(hybrid); !maps.Equal(got, want) {
		t.Errorf("mounts are %v, expected %v", got, want)
	}
	paths := cgroupPaths("5:cpu,cpuacct:/a\n4:memory:/b:c\n0::/d\n")
	if want := map[string]string{"cpu": "/a", "cpuacct": "/a", "memory": "/b:c", "": "/d"}; !maps.Equal(paths, want) {
		t.Errorf("paths are %v, expected %v", paths, want)
	}
}

func TestDelegatedCgroupsOfV2AreFoundAboveTheOwnOne(t *testing.T) {
	mount := t.TempDir()
	for dir, files := range map[string][2]string{"": {"cpu memory pids", ""}, "/slice": {"memory pids", "memory pids"}, "/slice/own": {"", ""}} {
		if err := os.MkdirAll(mount+dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"cgroup.controllers", "cgroup.subtree_control"} {
			if err := os.WriteFile(mount+dir+"/"+name, []byte(files[i]+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	h, ok := unified(mount, "/slice/own")
	if !ok || !h.v2 || h.parents["unified"] != mount+"/slice" {
		t.Errorf("got %+v, %v, expected the slice", h, ok)
	}
	if _, ok := unified("", ""); ok {
		t.Error("found a cgroup without a mount")
	}
}

func TestAMissingStatusRecordIsNotASuccess(t *testing.T) {
	whole := binary.LittleEndian.AppendUint32([]byte{'S'}, 3<<8)
	whole = binary.LittleEndian.AppendUint32(whole, 9)
	for _, v := range []uint64{1500, 500, 4096, 300} {
		whole = binary.LittleEndian.AppendUint64(whole, v)
	}
	r, ok, failure := parseRecord(whole)
	if !ok || failure != "" || r.wait.ExitStatus() != 3 || r.cpu != 2*time.Millisecond || r.peakKB != 4096 || r.init != 300*time.Microsecond || r.faults != 9 {
		t.Errorf("got %+v, %v, %q", r, ok, failure)
	}
	for n := range len(whole) {
		if _, ok, _ := parseRecord(whole[:n]); ok {
			t.Errorf("a record of %d bytes was accepted", n)
		}
	}
	if _, ok, failure := parseRecord([]byte("Emount /tmp: no space")); ok || failure != "mount /tmp: no space" {
		t.Errorf("a failure reads %v, %q", ok, failure)
	}
}

func TestMemoryOfTheTreeIsLimitedWithoutCgroups(t *testing.T) {
	p := startPool(t, Options{Tier: TierB, Zygotes: 1, Warm: 1, Without: Layers{Cgroups: true}})
	const code = `
import os, time
for _ in range(%d):
    if os.fork() == 0:
        b = bytearray(40 << 20)
        for i in range(0, len(b), 4096): b[i] = 1
        time.sleep(%g)
        os._exit(0)
for _ in range(%d): os.wait()
print('done')`
	if r := runCall(t, p, Call{Code: fmt.Sprintf(code, 4, 1000.0, 4), Limits: Limits{MemoryMB: 100, Wall: time.Minute}}); r.Status != OOM {
		t.Errorf("four processes with 40 MiB each gave %+v, expected oom with 100 MiB", r)
	}
	if r := runCall(t, p, Call{Code: fmt.Sprintf(code, 2, 0.3, 2), Limits: Limits{MemoryMB: 100, Wall: time.Minute}}); r.Stdout != "done\n" {
		t.Errorf("two processes with 40 MiB each gave %+v, expected them to fit 100 MiB", r)
	}
}

// The bandwidth controller gives the call a twentieth of a core.
func TestTrap23AStarvedCallIsAnInfrastructureError(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of a core")
	}
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	if p.seats.cgroups == nil {
		t.Skip("no writable cpu cgroup")
	}
	limits := Limits{CPU: 700 * time.Millisecond, Wall: 700 * time.Millisecond}.withDefaults(p.opt.Limits)
	sl, err := p.fork(p.shelves[0].zygote(0), limits, oneCall)
	if err != nil {
		t.Fatal(err)
	}
	g := sl.seat.group
	if g.bandwidth == "" {
		t.Skip("no cpu controller")
	}
	t.Cleanup(func() { _ = g.limitCPU(1) })
	if err := starve(g); err != nil {
		t.Fatal(err)
	}
	r, _, err := execute(deadline(t), sl, Call{ID: "starved", Code: "while True: pass", Limits: limits})
	if !errors.Is(err, ErrInfrastructure) || !strings.Contains(err.Error(), "starved") {
		t.Errorf("got %+v, %v, expected a starved call", r, err)
	}
}

func starve(g *group) error {
	if g.v2 {
		return writeFile(g.bandwidth, "cpu.max", "5000 100000")
	}
	return writeFile(g.bandwidth, "cpu.cfs_quota_us", "5000")
}

// The unified hierarchy is written as the kernel documents it (admin-guide/cgroup-v2).
func TestASeatOfV2IsLimitedAndRead(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "seat-0")
	c := &cgroups{v2: true, dirs: map[string]string{"unified": root}, order: []string{"unified"}}
	files := map[string]string{"cgroup.procs": "", "memory.events": "low 0\noom 1\noom_kill 2\n", "cpu.stat": "usage_usec 1500\nuser_usec 1000\n", "cpu.max": "max 100000"}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g := &group{v2: true}
	if err := g.use("unified", c.dirs["unified"]+"/seat-0"); err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if err := g.apply(Limits{MemoryMB: 100, TmpKB: 1024, Pids: 7, Cores: 2}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory.max": fmt.Sprint(101<<20 + groupHeadroom), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "7", "cpu.max": "200000 100000"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v, expected %q", name, b, err, want)
		}
	}
	if used, ok := g.cpuTime(); !ok || used != 1500*time.Microsecond {
		t.Errorf("CPU time is %v, %v", used, ok)
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte("oom_kill 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if n := g.oomKills(); n != 1 {
		t.Errorf("%d kills since the limits were set, expected 1", n)
	}
}

// A descriptor short for a moment must not cost the pool the seat.
func TestASeatThatCouldNotBeMadeIsMadeLater(t *testing.T) {
	root := t.TempDir()
	s := &seats{cgroups: &cgroups{dirs: map[string]string{"pids": root}, order: []string{"pids"}}}
	before := countFiles(t)
	if _, err := s.take(); err == nil {
		t.Fatal("a seat was made without the file that calls join through")
	}
	if after := countFiles(t); after != before {
		t.Errorf("%d descriptors after the failure, %d before", after, before)
	}
	if err := os.WriteFile(filepath.Join(root, "seat-0", "tasks"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	seat, err := s.take()
	if err != nil {
		t.Fatal(err)
	}
	seat.group.close()
}
