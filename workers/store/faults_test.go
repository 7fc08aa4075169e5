package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// victim is the environment variable that makes this test binary run
// TestVictim as the process to be killed.
const victim = "STORE_TEST_VICTIM"

func TestVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		t.Skip("only as a child of the tests below")
	}
	f, err := FaultsFromEnv()
	must(t, err)
	s := WithFaults(NewMemory(), f)
	for _, key := range []string{"a/1", "b/1", "a/2", "a/3"} {
		os.Stderr.WriteString("put " + key + "\n")
		_, err := s.Put(t.Context(), key, nil, PutOptions{})
		must(t, err)
		os.Stderr.WriteString("did " + key + "\n")
	}
	f.Point(BeforeApply, "step 1")
	os.Stderr.WriteString("applied\n")
}

// runVictim returns what the child reported before it ended, and whether it
// died by SIGKILL.
func runVictim(t *testing.T, killAt, once string) (said string, killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestVictim$")
	cmd.Env = append(os.Environ(), victim+"=1", EnvKillAt+"="+killAt, EnvKillOnce+"="+once)
	var out strings.Builder
	cmd.Stderr = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		killed = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	}
	return strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "; "), killed
}

func TestAProcessDiesAtTheNamedPoint(t *testing.T) {
	for _, c := range []struct{ at, said string }{
		{"before-put:b/", "put a/1; did a/1; put b/1"},
		{"after-put:b/1", "put a/1; did a/1; put b/1"},
		{"before-put:a/:2", "put a/1; did a/1; put b/1; did b/1; put a/2"},
		{"after-put:zzz,before-apply:step", "put a/1; did a/1; put b/1; did b/1; put a/2; did a/2; put a/3; did a/3"},
	} {
		said, killed := runVictim(t, c.at, "")
		if !killed || said != c.said {
			t.Errorf("%s: killed %v after %q, want killed after %q", c.at, killed, said, c.said)
		}
	}
}

func TestAKillHappensOnceOverRestarts(t *testing.T) {
	once := filepath.Join(t.TempDir(), "kills")
	const at = "after-put:b/,before-apply:step"
	for i, want := range []bool{true, true, false, false} {
		if _, killed := runVictim(t, at, once); killed != want {
			t.Fatalf("start %d: killed %v, want %v", i+1, killed, want)
		}
	}
	lines, err := os.ReadFile(once)
	must(t, err)
	if string(lines) != "after-put:b/\nbefore-apply:step\n" {
		t.Fatalf("record of kills is %q", lines)
	}
}

func TestAMalformedKillPointIsRefused(t *testing.T) {
	for _, spec := range []string{"after-put", ":x", "a:b:0", "a:b:x", "a:b:1:2"} {
		if _, err := KillPoints(spec, ""); err == nil || !strings.Contains(err.Error(), spec) {
			t.Errorf("%q: error is %v, want one that names it", spec, err)
		}
	}
	none, err := KillPoints("", "")
	must(t, err)
	none.Point(BeforeApply, "x")
	if s := NewMemory(); WithFaults(s, none) != Store(s) {
		t.Error("no kill points still wrap the store")
	}
}
