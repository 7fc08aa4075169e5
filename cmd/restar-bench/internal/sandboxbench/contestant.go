package sandboxbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// upTimeout is how long a contestant may take to answer: interpreters import their libraries.
	upTimeout = time.Minute
	// downTimeout is how long it may take to end after SIGTERM.
	downTimeout = 20 * time.Second
)

// contestant is a running service and the account of its tree.
type contestant struct {
	name string
	url  string
	cmd  *exec.Cmd
	cpu  *account
	said bytes.Buffer // of its standard error
}

// launch starts a service that will answer GET ping below url.
func launch(ctx context.Context, name, url, ping string, args ...string) (*contestant, error) {
	c := &contestant{name: name, url: url, cpu: openAccount(name)}
	wrapped := c.cpu.wrap(args)
	c.cmd = exec.Command(wrapped[0], wrapped[1:]...)
	c.cmd.Stderr = &c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.cpu.pid = c.cmd.Process.Pid
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url+ping, nil)
		if err != nil {
			return nil, err
		}
		if r, err := http.DefaultClient.Do(q); err == nil {
			r.Body.Close()
			if r.StatusCode < 300 {
				return c, nil
			}
		}
		select {
		case <-ctx.Done():
			c.stop()
			return nil, fmt.Errorf("%s did not answer on %s within %v: %w\n%s", name, url, upTimeout, context.Cause(ctx), c.said.Bytes())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stop ends the service and everything of it.
func (c *contestant) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan struct{})
	go func() { _ = c.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(downTimeout):
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	c.cpu.close()
}

// peakKB is the largest resident set of the service's own process so far.
func (c *contestant) peakKB() float64 { return statusKB(c.cmd.Process.Pid, "VmHWM:") }

func statusKB(pid int, field string) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == field {
			kb, _ := strconv.ParseFloat(string(f[1]), 64)
			return kb
		}
	}
	return 0
}

// freePort finds a port that nothing listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// restar starts `restar sandbox serve` with its defaults.
func (b *bench) restar(ctx context.Context) (*contestant, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	return launch(ctx, "restar", "http://"+listen, "/readyz", b.Restar, "sandbox", "serve", "--listen", listen, "--isolation", string(b.Tier))
}

// errAbsent says that a peer is not on this machine.
var errAbsent = errors.New("not installed")

// codeJudge starts the reproduction of code-judge's design: Redis, one worker a core as code-judge has it, and one HTTP server.
func (b *bench) codeJudge(ctx context.Context, workers int) (*contestant, error) {
	script := filepath.Join(b.Peers, "code_judge.sh")
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("code-judge's design: %w: run %s install", errAbsent, script)
	}
	redis, err := freePort()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return launch(ctx, "code-judge", fmt.Sprintf("http://127.0.0.1:%d", port), "/ping", script, "serve", strconv.Itoa(redis), strconv.Itoa(port), strconv.Itoa(workers))
}

// prototype starts a built prototype in the configuration in which it was fastest: two calls at once, warmed interpreters.
func (b *bench) prototype(ctx context.Context) (*contestant, error) {
	if b.Prototype == "" {
		return nil, fmt.Errorf("prototype: %w: name its folder in RESTAR_SANDBOX_PROTOTYPE", errAbsent)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	binary := filepath.Join(b.Prototype, "sbx")
	return launch(ctx, "prototype", "http://"+listen, "/ping", "/bin/sh", "-c", `cd "$0" && exec ./sbx serve -addr "$1" -maxrun 2 -warm 4 -warmcode -notouch`, filepath.Dir(binary), listen)
}
