package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asServer is the environment variable that makes this test binary the server.
const asServer = "DEVSERVER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return cmd, &stderr
}

// refused runs the server and wants exit code 2 and a message with the parts.
func refused(t *testing.T, args []string, parts ...string) {
	t.Helper()
	cmd, stderr := command(args...)
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitUsage {
		t.Errorf("%v: exit code %d, want %d: %s", args, code, exitUsage, stderr)
	}
	for _, p := range parts {
		if !strings.Contains(stderr.String(), p) {
			t.Errorf("%v: message %q does not say %q", args, stderr, p)
		}
	}
}

func launch(t *testing.T, dir string) (*exec.Cmd, readiness) {
	t.Helper()
	cmd, stderr := command("--dir", dir, "--grpc", "0", "--ui", "0", "--s3", "0")
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var r readiness
		body, err := os.ReadFile(filepath.Join(dir, "ready.json"))
		if err == nil && json.Unmarshal(body, &r) == nil && r.Pid == cmd.Process.Pid {
			return cmd, r
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready after 2 minutes: %s", stderr)
		}
	}
}

func TestTheStackAnswersStopsInOrderAndRefusesASecondOwner(t *testing.T) {
	dir := t.TempDir()
	cmd, r := launch(t, dir)
	for _, u := range []string{r.UI, r.S3 + healthPath} {
		resp, err := http.Get(u)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("GET %s answers %s", u, resp.Status)
		}
	}
	refused(t, []string{"--dir", dir}, dir, "in use by process "+strconv.Itoa(r.Pid))
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	must(t, cmd.Wait())
	if _, err := os.Stat(filepath.Join(dir, "ready.json")); err == nil {
		t.Error("a stopped server leaves its ready file")
	}
	st, err := os.Stat(filepath.Join(dir, "credentials.json"))
	must(t, err)
	if st.Mode().Perm() != 0o600 {
		t.Errorf("credentials have mode %v, want 0600", st.Mode())
	}
	_, again := launch(t, dir)
	if again.SecretKey != r.SecretKey || len(r.SecretKey) != 2*secretBytes {
		t.Error("the folder's secret changed")
	}
}

func TestKill9DuringTheFirstStartLeavesAFolderThatStarts(t *testing.T) {
	for _, after := range []time.Duration{20, 100, 200, 300, 400, 600} {
		dir := t.TempDir()
		cmd, _ := command("--dir", dir, "--grpc", "0", "--ui", "0", "--s3", "0")
		must(t, cmd.Start())
		time.Sleep(after * time.Millisecond)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		next, _ := launch(t, dir)
		must(t, next.Process.Kill())
		_ = next.Wait()
	}
}

func TestBadInputIsNamedWithTheFixAndExitCode2(t *testing.T) {
	l, err := net.Listen("tcp", host+":0")
	must(t, err)
	defer l.Close()
	taken := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	dir := t.TempDir()
	refused(t, []string{}, "--dir")
	refused(t, []string{"--dir", dir, "--nope"}, "nope")
	refused(t, []string{"--dir", dir, "extra"}, "extra")
	refused(t, []string{"--dir", dir, "--ui", "70000"}, "--ui", "70000")
	refused(t, []string{"--dir", filepath.Join(file, "x")}, file, "--dir")
	refused(t, []string{"--dir", dir + "/a?b"}, "?", "choose a path")
	refused(t, []string{"--dir", dir, "--grpc", "0", "--s3", "0", "--ui", taken}, taken, "Web UI", "--ui")
	refused(t, []string{"--dir", dir, "--grpc", taken, "--s3", "0", "--ui", "0"}, taken, "frontend", "--grpc")
	if entries, err := os.ReadDir(filepath.Join(dir, "s3")); err == nil {
		t.Errorf("a refused start left objects: %v", entries)
	}
}

func TestASupervisorIsToldBadInputByAnExitCodeThatNoCrashHas(t *testing.T) {
	bad := usagef("port taken")
	t.Setenv(envSupervised, "1")
	if got := exitCode(bad); got != exitConfig {
		t.Errorf("supervised: exit code %d, want %d", got, exitConfig)
	}
	if got := exitCode(errors.New("fault")); got != exitFault {
		t.Errorf("a fault of its own: exit code %d, want %d", got, exitFault)
	}
	t.Setenv(envSupervised, "")
	if got := exitCode(bad); got != exitUsage {
		t.Errorf("by hand: exit code %d, want %d", got, exitUsage)
	}
}

func TestADatabaseOfAnotherLayoutIsRefused(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "temporal.db")
	must(t, os.WriteFile(foreign, nil, 0o600))
	if _, err := openDatabase(foreign); exitCode(err) != exitUsage || !strings.Contains(err.Error(), foreign) {
		t.Errorf("a database without a stamp gives %v", err)
	}
	path := filepath.Join(t.TempDir(), "temporal.db")
	_, err := openDatabase(path)
	must(t, err)
	_, err = openDatabase(path)
	must(t, err)
	must(t, withStampDB(path, setStamp("temporal schema 0.1")))
	if _, err := openDatabase(path); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "temporal schema 0.1") || !strings.Contains(err.Error(), stamp()) {
		t.Errorf("a database of another version gives %v", err)
	}
}

func TestAnUnfinishedDatabaseIsBegunAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "temporal.db")
	must(t, os.WriteFile(path, []byte("half a database"), 0o600))
	must(t, os.WriteFile(path+".creating", nil, 0o600))
	_, err := openDatabase(path)
	must(t, err)
	must(t, checkStamp(path))
	if _, err := os.Stat(path + ".creating"); err == nil {
		t.Error("the marker of an unfinished creation stays")
	}
}
