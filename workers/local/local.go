// Package local runs everything on one machine: it finds, starts, watches and
// stops restar-devserver, supervises worker processes, and makes their death
// cheap.
//
// Invariants:
//   - one supervisor owns a folder (flock); a second one waits for a dying
//     owner and then refuses, naming it;
//   - no child outlives its supervisor: the kernel kills it when the supervisor
//     dies, kill -9 included;
//   - a folder keeps its ports, so the address of the Web UI stays;
//   - a child that dies is started again; one that keeps dying ends the whole
//     with the last lines of its log;
//   - every wait has a deadline and says whom it waits for.
package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// readyTimeout bounds a start of the server: 1 to 3 s measured, generous for
	// a machine that is busy compiling.
	readyTimeout = 90 * time.Second
	// ownerTimeout is how long a former owner of the folder may take to die.
	ownerTimeout = 20 * time.Second
	// readyEvery is the pause between two looks at the ready file.
	readyEvery = 20 * time.Millisecond
	// serverGrace is the server's time for a clean stop (1.6 s measured).
	serverGrace = 25 * time.Second
)

// UserError is an error that the user can mend; its text says how.
type UserError struct{ text string }

func (e *UserError) Error() string { return e.text }

func userf(format string, args ...any) error { return &UserError{fmt.Sprintf(format, args...)} }

// Options say where a stack lives.
type Options struct {
	Dir      string            // data folder; made when missing
	Binary   string            // restar-devserver; "" finds it, see FindDevserver
	Progress func(text string) // told what is waited for; may be nil
}

// Endpoints are where the stack answers, as restar-devserver writes them.
type Endpoints struct {
	Pid       int    `json:"pid"`
	Temporal  string `json:"temporal"` // host:port of the frontend
	UI        string `json:"ui"`       // URL
	S3        string `json:"s3"`       // URL
	AccessKey string `json:"access_key"`
	SecretKey string `json:"secret_key"`
	Bucket    string `json:"bucket"`
	Namespace string `json:"namespace"`
}

// Stack is a running restar-devserver and the lock of its folder.
type Stack struct {
	dir      string
	binary   string
	ports    ports
	progress func(string)
	lock     *os.File
	spawner  *spawner
	pids     *pidFile
	stop     context.CancelFunc
	done     chan struct{} // closed when the watch ends

	mu  sync.Mutex // guards at, err
	at  Endpoints
	err error
}

// Start takes the folder and returns when the server answers. It stays up,
// across deaths of the server, until Stop.
func Start(ctx context.Context, o Options) (*Stack, error) {
	s, err := newStack(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.launch(ctx); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

func newStack(ctx context.Context, o Options) (*Stack, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil || o.Dir == "" {
		return nil, userf("data folder %q has no absolute form (%v); name another", o.Dir, err)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	binary := o.Binary
	if binary == "" {
		if binary, err = FindDevserver(); err != nil {
			return nil, err
		}
	}
	for _, d := range []string{dir, filepath.Join(dir, "logs"), filepath.Join(dir, "server")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, userf("folder %s cannot be made (%v); choose another or fix its permissions", d, err)
		}
	}
	lock, err := takeFolder(ctx, dir, o.Progress)
	if err != nil {
		return nil, err
	}
	s := &Stack{dir: dir, binary: binary, progress: o.Progress, lock: lock, spawner: newSpawner(), pids: newPidFile(dir), done: make(chan struct{})}
	if s.ports, err = loadPorts(ctx, dir); err == nil {
		err = s.pids.reset()
	}
	if err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// launch starts the server once and leaves its watch behind.
func (s *Stack) launch(ctx context.Context) error {
	child, err := s.startServer()
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, child); err != nil {
		child.end(0)
		return err
	}
	watch, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.watch(watch, child)
	return nil
}

// Dir is the data folder, absolute.
func (s *Stack) Dir() string { return s.dir }

// Endpoints are where the stack answers; only the process id changes when the
// server is started again.
func (s *Stack) Endpoints() Endpoints {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// Done is closed when the stack is no more: stopped, or the server kept dying.
func (s *Stack) Done() <-chan struct{} { return s.done }

// Err tells, after Done, why the stack ended by itself; nil after Stop.
func (s *Stack) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Stop ends the server in good order and gives the folder back. It waits at
// most for the server's grace period.
func (s *Stack) Stop() error {
	s.stop()
	<-s.done
	s.release()
	return s.Err()
}

func (s *Stack) release() {
	s.spawner.close()
	s.lock.Close()
}

func (s *Stack) serverDir() string { return filepath.Join(s.dir, "server") }
func (s *Stack) readyFile() string { return filepath.Join(s.serverDir(), "ready.json") }
func (s *Stack) logFile() string   { return filepath.Join(s.dir, "logs", "devserver.out") }

func (s *Stack) startServer() (*process, error) {
	if err := os.Remove(s.readyFile()); err != nil && !os.IsNotExist(err) {
		return nil, userf("stale ready file %s cannot be removed (%v); remove it", s.readyFile(), err)
	}
	return s.spawner.start(Child{
		Name: serverName, LogFile: s.logFile(),
		Args: append([]string{s.binary, "--dir", s.serverDir(), "--ready", s.readyFile()}, s.ports.flags()...),
	}, s.pids)
}

// serverName is the server's entry in pids.json.
const serverName = "devserver"

func (s *Stack) awaitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %v", readyTimeout))
	defer cancel()
	began := time.Now()
	said := time.Duration(0)
	for {
		if at, ok := s.readReady(p.pid); ok {
			s.mu.Lock()
			s.at = at
			s.mu.Unlock()
			return nil
		}
		if waited := time.Since(began).Truncate(time.Second); waited > said {
			said = waited
			s.progress(fmt.Sprintf("waiting for the local Temporal server, Web UI and S3 to answer (%v of at most %v)", waited, readyTimeout))
		}
		select {
		case <-p.done:
			return p.failure("restar-devserver ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("waiting for restar-devserver (process %d, log %s): %w", p.pid, s.logFile(), context.Cause(ctx))
		case <-time.After(readyEvery):
		}
	}
}

func (s *Stack) readReady(pid int) (Endpoints, bool) {
	var at Endpoints
	body, err := os.ReadFile(s.readyFile())
	if err != nil || json.Unmarshal(body, &at) != nil {
		return at, false
	}
	return at, at.Pid == pid
}

// watch keeps the server up until ctx ends or it keeps dying.
func (s *Stack) watch(ctx context.Context, p *process) {
	defer close(s.done)
	var r restarts
	for {
		select {
		case <-ctx.Done():
			p.end(serverGrace)
			return
		case <-p.done:
		}
		next, err := s.revive(ctx, p, &r)
		if err != nil {
			if ctx.Err() == nil {
				s.mu.Lock()
				s.err = err
				s.mu.Unlock()
			}
			return
		}
		p = next
	}
}

// revive starts the server again, on the same ports, until it is ready.
func (s *Stack) revive(ctx context.Context, p *process, r *restarts) (*process, error) {
	for {
		pause, err := r.next(p)
		if err != nil || !wait(ctx, pause) {
			return nil, err
		}
		s.progress("the local server died; starting it again")
		if p, err = s.startServer(); err != nil {
			return nil, err
		}
		err = s.awaitReady(ctx, p)
		if err == nil {
			return p, nil
		}
		p.end(0)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}
