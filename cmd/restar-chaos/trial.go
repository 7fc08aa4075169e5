package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	runName = "chaos"
	// calmAfterKill lets a run come back before the next kill, so that every kill hits work and not a restart.
	calmAfterKill = 4 * time.Second
	// attempts bounds how often the command is given again: every planned kill can end it at most once.
	attempts = 40
)

// trial is one run of the recipe in a folder of its own.
type trial struct {
	*options
	dir    string
	ranks  int // processes that share the trainer's steps; 0 is one
	took   time.Duration
	killed []string // what was killed, in order
}

// play gives the command until it succeeds, and kills by plan meanwhile.
func (t *trial) play(ctx context.Context, kills []kill) error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	begin := time.Now()
	seeded, points := split(kills)
	hunter := &hunter{trial: t, left: seeded, begin: begin}
	for range attempts {
		err := t.once(ctx, points, hunter)
		if err == nil {
			t.took = time.Since(begin)
			return t.countPoints(points, hunter)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !wasKilled(err) {
			return fmt.Errorf("the command failed on its own: %w\n%s", err, t.tail())
		}
	}
	return fmt.Errorf("not done after %d attempts\n%s", attempts, t.tail())
}

// once gives the command and waits for it.
func (t *trial) once(ctx context.Context, points []string, h *hunter) error {
	log, err := os.OpenFile(t.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, t.binary, "run", t.recipe, "--dir", t.dir, "--run", runName)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "RESTAR_KILL_AT="+strings.Join(points, ","), "RESTAR_KILL_ONCE="+t.marks(), fmt.Sprintf("RESTAR_RANKS=%d", max(1, t.ranks)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	hunted := make(chan struct{})
	go func() { defer close(hunted); h.hunt(ctx, cmd.Process.Pid, done) }()
	err = cmd.Wait()
	close(done)
	<-hunted
	h.confirm(wasKilled(err))
	return err
}

func (t *trial) log() string { return filepath.Join(filepath.Dir(t.dir), filepath.Base(t.dir)+".log") }
func (t *trial) marks() string {
	return filepath.Join(filepath.Dir(t.dir), filepath.Base(t.dir)+".kills")
}

// countPoints adds the kills at named points, which workers noted before they died, and demands every planned kill.
func (t *trial) countPoints(points []string, h *hunter) error {
	t.killed = append(t.killed, h.done...)
	marks, err := os.ReadFile(t.marks())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, line := range strings.Fields(string(marks)) {
		t.killed = append(t.killed, "worker at "+line)
		fmt.Printf("killed a worker at %s\n", line)
	}
	if want := len(points) + len(h.left) + len(h.done); len(t.killed) < want {
		return fmt.Errorf("%d of %d planned kills happened: %s", len(t.killed), want, strings.Join(t.killed, "; "))
	}
	return nil
}

// tail is the end of the command's output.
func (t *trial) tail() string {
	body, err := os.ReadFile(t.log())
	if err != nil {
		return err.Error()
	}
	const enough = 4000
	return string(body[max(0, len(body)-enough):])
}

func split(kills []kill) (seeded []kill, points []string) {
	for _, k := range kills {
		if k.point != "" {
			points = append(points, k.point)
		} else {
			seeded = append(seeded, k)
		}
	}
	return seeded, points
}

func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
