package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Child is a process to run.
type Child struct {
	Name    string   // its entry in pids.json
	Args    []string // program and arguments
	Env     []string // NAME=value, added to this process's environment
	LogFile string   // its output is appended here
}

// spawner starts children from one OS thread that lives as long as it does:
// the kernel sends a child its death signal when the *thread* that started it
// ends, and Go ends threads as it likes.
type spawner struct {
	jobs  chan func()
	close func()
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	s.close = sync.OnceFunc(func() { close(s.jobs) })
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the loop
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// process is a running child.
type process struct {
	Child
	pid   int
	began time.Time
	done  chan struct{} // closed when it ended
	state *os.ProcessState
	log   int64 // size of the log file when it was started
}

// start runs a child in its own process group and enters it in pids.
func (s *spawner) start(c Child, pids *pidFile) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(c.LogFile), 0o700); err != nil {
		return nil, userf("log folder of %s cannot be made (%v); fix its permissions", c.Name, err)
	}
	out, err := os.OpenFile(c.LogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, userf("log of %s cannot be opened (%v); fix its permissions", c.Name, err)
	}
	defer out.Close()
	p := &process{Child: c, began: time.Now(), done: make(chan struct{})}
	if st, err := out.Stat(); err == nil {
		p.log = st.Size()
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(append(os.Environ(), c.Env...), EnvSupervised+"=1")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	s.jobs <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s (%s): %w", c.Name, c.Args[0], err)
	}
	p.pid = cmd.Process.Pid
	go p.reap(cmd, pids)
	return p, pids.set(c.Name, p.pid)
}

func (p *process) reap(cmd *exec.Cmd, pids *pidFile) {
	_ = cmd.Wait() // the state says it all
	p.state = cmd.ProcessState
	// What it started and left behind goes with it.
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	_ = pids.remove(p.Name, p.pid)
	close(p.done)
}

// end asks the child to stop, kills its group after the grace period, and
// waits until it is gone.
func (p *process) end(grace time.Duration) {
	if grace > 0 {
		_ = syscall.Kill(-p.pid, syscall.SIGTERM)
		select {
		case <-p.done:
			return
		case <-time.After(grace):
		}
	}
	select {
	case <-p.done:
		return
	default:
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	<-p.done
}

// failure describes an ended child with the last lines of its log. It is the
// user's to mend when the child said so by its exit code.
func (p *process) failure(what string) error {
	text := fmt.Sprintf("%s: %s %s after %v; the end of %s:\n%s", what, p.Name, p.state, time.Since(p.began).Round(time.Millisecond), p.LogFile, tail(p.LogFile, p.log, shownLines))
	if p.state.ExitCode() == ExitConfig {
		return &UserError{text}
	}
	return errors.New(text)
}
