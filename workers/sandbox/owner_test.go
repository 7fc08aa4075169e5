package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ownerVar makes the test binary own a pool with running calls until it is killed.
const ownerVar = "SANDBOX_TEST_OWNER"

func ownPool() {
	p, err := Start(context.Background(), Options{Tier: Tier(os.Getenv(ownerVar)), Zygotes: 2})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	for range 2 {
		go func() {
			_, _ = p.Run(context.Background(), Call{Limits: Limits{CPU: time.Hour, Wall: time.Hour},
				Code: "import os,subprocess\nif os.fork()==0: os.setsid()\nsubprocess.Popen(['sleep','31336'])\nwhile True: pass"})
		}()
	}
	for len(tree(p)) < 10 || p.Status().Running < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("ready", strings.Trim(fmt.Sprint(tree(p)), "[]"))
	select {}
}

// tree lists every process of a pool.
func tree(p *Pool) (pids []int) {
	for _, s := range p.shelves {
		for _, z := range s.living() {
			pids = append(pids, descendants(z.cmd.Process.Pid)...)
		}
	}
	return pids
}

func TestNothingSurvivesAKilledOwner(t *testing.T) {
	owner := exec.CommandContext(deadline(t), "/proc/self/exe")
	owner.Env = append(os.Environ(), ownerVar+"="+string(testTier()))
	owner.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready ") {
		t.Fatalf("owner said %q, %v", line, err)
	}
	pids := handles(t, strings.Fields(line)[1:])
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	for pid, fd := range pids {
		sl := slot{pidfd: fd}
		if !sl.awaitGone(testDeadline) {
			t.Errorf("process %s survived", pid)
		}
		unix.Close(fd)
	}
	if testTier() == TierA {
		assertSwept(t, owner.Process.Pid)
	}
}

// handles opens pidfds, which later pids cannot be mistaken for.
func handles(t *testing.T, pids []string) map[string]int {
	m := map[string]int{}
	for _, s := range pids {
		pid, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		if fd, err := unix.PidfdOpen(pid, 0); err == nil { // one that ended by itself is not of interest
			m[s] = fd
		}
	}
	if len(m) < 8 {
		t.Fatalf("%d of the owner's processes live, expected zygotes, inits, warm slots and running calls", len(m))
	}
	return m
}

// assertSwept starts another pool, which removes the cgroups that the killed owner left.
func assertSwept(t *testing.T, owner int) {
	h, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	left := func() (all []string) {
		for _, parent := range h.parents {
			dirs, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+strconv.Itoa(owner)+"-*"))
			all = append(all, dirs...)
		}
		return all
	}
	if len(left()) == 0 {
		t.Fatal("the killed owner left no cgroups: the test proves nothing")
	}
	startPool(t, Options{Zygotes: 1, Warm: 1})
	if l := left(); len(l) > 0 {
		t.Errorf("stale cgroups are left: %v", l)
	}
}

func TestALivePoolIsNotSwept(t *testing.T) {
	if testTier() != TierA {
		t.Skip("tier B has no cgroups")
	}
	p := startPool(t, Options{Zygotes: 1, Warm: 1})
	startPool(t, Options{Zygotes: 1, Warm: 1})
	if r := run(t, p, "print('alive')"); r.Status != Success || r.Stdout != "alive\n" {
		t.Errorf("got %+v", r)
	}
}
