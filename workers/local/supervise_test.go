package local

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(dir, name, script string) Child {
	return Child{Name: name, Args: []string{"/bin/sh", "-c", script}, Env: []string{"GREETING=hello"}, LogFile: filepath.Join(dir, "logs", name+".log")}
}

func readPids(t *testing.T, dir string) map[string]int {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, "pids.json"))
	if err != nil {
		return nil
	}
	var pids map[string]int
	must(t, json.Unmarshal(body, &pids))
	return pids
}

// alive tells whether a process runs; a zombie does not.
func alive(pid int) bool {
	body, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(body), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestADeadChildRunsAgainAfterItsDeathWasTold(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan string, 10)
	s := &Supervisor{Dir: dir, Grace: 5 * time.Second, OnExit: func(_ context.Context, c Child) { told <- c.Name }}
	ended := make(chan error, 1)
	go func() {
		ended <- s.Supervise(ctx, []Child{shell(dir, "a", "echo $GREETING; sleep 1000 & wait"), shell(dir, "b", "sleep 1000")})
	}()
	var first map[string]int
	eventually(t, "both children", func() bool {
		first = readPids(t, dir)
		return first["a"] > 0 && first["b"] > 0 && logHas(dir, "a", "hello")
	})
	must(t, syscall.Kill(first["a"], syscall.SIGKILL))
	if name := <-told; name != "a" {
		t.Fatalf("the death of %s was told, want a", name)
	}
	var second map[string]int
	eventually(t, "another a", func() bool {
		second = readPids(t, dir)
		return second["a"] > 0 && second["a"] != first["a"]
	})
	if second["b"] != first["b"] || second[supervisorName] != os.Getpid() {
		t.Fatalf("processes were %v and are %v", first, second)
	}
	// What the dead child had started is gone with it.
	eventually(t, "the end of the dead child's group", func() bool { return syscall.Kill(-first["a"], 0) != nil })
	cancel()
	must(t, <-ended)
	for name, pid := range second {
		if name != supervisorName && alive(pid) {
			t.Errorf("%s outlived its supervisor", name)
		}
	}
}

func logHas(dir, name, text string) bool {
	body, err := os.ReadFile(filepath.Join(dir, "logs", name+".log"))
	return err == nil && strings.Contains(string(body), text)
}

func TestAChildThatKeepsDyingEndsEverythingWithItsLastWords(t *testing.T) {
	dir := t.TempDir()
	s := &Supervisor{Dir: dir, Grace: 5 * time.Second}
	err := s.Supervise(t.Context(), []Child{shell(dir, "good", "sleep 1000"), shell(dir, "bad", "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i; done; exit 7")})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"worker bad", "exit status 7", "line 11\n", "line 30"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "line 10\n") {
		t.Errorf("error shows more than the last %d lines: %q", shownLines, err)
	}
	if pids := readPids(t, dir); len(pids) != 1 {
		t.Errorf("processes left: %v", pids)
	}
}

func TestAChildThatCannotRunHereIsNotStartedAgain(t *testing.T) {
	dir := t.TempDir()
	s := &Supervisor{Dir: dir}
	err := s.Supervise(t.Context(), []Child{shell(dir, "w", "echo the model folder is missing >&2; exit $((76 + 2 * RESTAR_SUPERVISED))")})
	wantUserError(t, err, "worker w", "the model folder is missing")
	if body, _ := os.ReadFile(filepath.Join(dir, "logs", "w.log")); strings.Count(string(body), "missing") != 1 {
		t.Errorf("it was started again: %q", body)
	}
}

// crasher is the environment variable that makes this test binary run
// TestCrashed as a Go process that dies of itself.
const crasher = "LOCAL_TEST_CRASHER"

func TestCrashed(t *testing.T) {
	if os.Getenv(crasher) == "" {
		t.Skip("only as a child of the test below")
	}
	go panic("index out of range") // outside of the test, which would catch it
	select {}
}

func TestACrashOfTheGoRuntimeIsStartedAgainAndNotTheUsersToMend(t *testing.T) {
	for name, child := range map[string]Child{
		"panic":   {Name: "w", Args: []string{os.Args[0], "-test.run", "^TestCrashed$"}, Env: []string{crasher + "=1"}},
		"SIGQUIT": shell("", "w", "exit 2"), // the runtime's answer to SIGQUIT and to the end of memory
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			child.LogFile = filepath.Join(dir, "logs", "w.log")
			ctx, cancel := context.WithCancel(t.Context())
			deaths := 0
			s := &Supervisor{Dir: dir, OnExit: func(context.Context, Child) {
				if deaths++; deaths == 3 {
					cancel()
				}
			}}
			if err := s.Supervise(ctx, []Child{child}); err != nil || deaths != 3 {
				t.Errorf("error %v after %d starts, want that it is started again and again", err, deaths)
			}
		})
	}
}

func TestOnlyASupervisedProcessTellsUserErrorsByAnotherExitCode(t *testing.T) {
	for _, c := range []struct {
		env        string
		code, want int
	}{{"", 2, 2}, {"1", 2, ExitConfig}, {"1", 0, 0}, {"1", 1, 1}, {"1", 130, 130}} {
		t.Setenv(EnvSupervised, c.env)
		if got := ExitCode(c.code, 2); got != c.want {
			t.Errorf("exit code %d with %s=%q is %d, want %d", c.code, EnvSupervised, c.env, got, c.want)
		}
	}
}

func TestAChildThatIgnoresTheEndIsKilledAfterItsGrace(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	s := &Supervisor{Dir: dir, Grace: 100 * time.Millisecond}
	ended := make(chan error, 1)
	go func() {
		ended <- s.Supervise(ctx, []Child{shell(dir, "deaf", "trap '' TERM; echo up; while true; do sleep 1; done")})
	}()
	eventually(t, "the child", func() bool { return logHas(dir, "deaf", "up") })
	pid := readPids(t, dir)["deaf"]
	cancel()
	must(t, <-ended)
	if alive(pid) {
		t.Fatal("it lives")
	}
}

// supervised is the environment variable that makes this test binary run
// TestSupervised as the process to be killed.
const supervised = "LOCAL_TEST_SUPERVISED"

func TestSupervised(t *testing.T) {
	dir := os.Getenv(supervised)
	if dir == "" {
		t.Skip("only as a child of the test below")
	}
	s := &Supervisor{Dir: dir}
	must(t, s.Supervise(t.Context(), []Child{shell(dir, "a", "sleep 1000"), shell(dir, "b", "sleep 1000")}))
}

func TestKill9OfTheSupervisorTakesItsChildrenAlong(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestSupervised$")
	cmd.Env = append(os.Environ(), supervised+"="+dir)
	must(t, cmd.Start())
	var pids map[string]int
	eventually(t, "the children", func() bool {
		pids = readPids(t, dir)
		return pids["a"] > 0 && pids["b"] > 0
	})
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, name := range []string{"a", "b"} {
		eventually(t, "the end of "+name, func() bool { return !alive(pids[name]) })
	}
}
