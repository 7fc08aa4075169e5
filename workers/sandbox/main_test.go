package sandbox

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	MaybeChild()
	if os.Getenv(ownerVar) != "" {
		ownPool()
	}
	os.Exit(m.Run())
}

// testDeadline bounds every wait of a test; nothing is asserted about time.
const testDeadline = 2 * time.Minute

func deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	t.Cleanup(cancel)
	return ctx
}

// testTier is the tier this user can have: tier A as root, tier B otherwise.
func testTier() Tier {
	if os.Geteuid() == 0 {
		return TierA
	}
	return TierB
}

func startPool(t testing.TB, opt Options) *Pool {
	t.Helper()
	if opt.Tier == "" {
		opt.Tier = testTier()
	}
	p, err := Start(deadline(t), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// run executes code with seed 1 and fails the test on an infrastructure error.
func run(t testing.TB, p *Pool, code string) Result {
	t.Helper()
	return runCall(t, p, Call{Code: code, Seed: 1})
}

func runCall(t testing.TB, p *Pool, c Call) Result {
	t.Helper()
	c.ID = t.Name()
	r, err := p.Run(deadline(t), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// needModule skips a test of a library that this machine does not have.
func needModule(t *testing.T, module string) {
	t.Helper()
	if err := exec.Command("/usr/bin/python3", "-c", "import "+module).Run(); err != nil {
		t.Skipf("%s is not installed: apt-get install %s", module, debianPackage(module))
	}
}

// asNobody runs the named tests of this binary again as an unprivileged user. The binary is copied to where that user may
// execute it.
func asNobody(t *testing.T, pattern string) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "restar-sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "sandbox.test")
	copyFile(t, binary, "/proc/self/exe")
	for _, f := range hostileFiles {
		copyFile(t, filepath.Join(dir, f.name), filepath.Join(hostileFolder(), f.name))
	}
	args := []string{"-test.run", pattern, "-test.v", "-test.timeout", "10m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, hostileVar + "=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "---") || strings.Contains(line, ".go:") || err != nil {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
	if err != nil {
		t.Fatalf("as nobody: %v", err)
	}
	if !strings.Contains(string(out), "--- PASS") {
		t.Fatal("as nobody: no test ran")
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
