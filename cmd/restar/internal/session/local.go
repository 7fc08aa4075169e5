package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/local"
)

// workerProcesses are the children of the embedded stack. Sampling has a process of its own: its memory and its sandbox
// come and go without the trainer.
var workerProcesses = []struct{ name, roles string }{
	{"trainer", "orchestrator,trainer"},
	{"rollout", "rollout,cpu"},
}

// Open connects to the user's stack, or to the embedded one, which it starts with its workers unless another command has.
// tell is told what is waited for.
func Open(ctx context.Context, o Options, tell func(string)) (*Session, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if !o.Local() {
		return connect(ctx, o)
	}
	if Running(o.Dir) {
		if s, err := Attach(ctx, o); err == nil {
			s.join(o.Dir) // another command runs the stack
			return s, nil
		}
	}
	stack, err := local.Start(ctx, local.Options{Dir: o.Dir, Progress: tell})
	if err != nil {
		return nil, err
	}
	o.use(stack.Endpoints())
	s, err := connect(ctx, o)
	if err != nil {
		return nil, errors.Join(err, stack.Stop())
	}
	s.UI = stack.Endpoints().UI
	if err := s.startWorkers(ctx, stack, o); err != nil {
		return nil, errors.Join(err, s.Close(), stack.Stop())
	}
	s.closers = append(s.closers, stack.Stop)
	return s, nil
}

// Attach connects to the user's stack, or to the embedded one that another command runs.
func Attach(ctx context.Context, o Options) (*Session, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if !o.Local() {
		return connect(ctx, o)
	}
	ready := filepath.Join(o.Dir, "server", "ready.json")
	body, err := os.ReadFile(ready)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fault.Userf("whether a stack is running in %s cannot be seen: %w; mend the permissions, or ask as the user who started it", o.Dir, err)
	}
	if err != nil {
		return nil, fault.Userf("no stack is running in %s; `restar run` or `restar dev` starts one and runs go on from where they were; --dir names another folder, --temporal your own server", o.Dir)
	}
	var at local.Endpoints
	if err := json.Unmarshal(body, &at); err != nil {
		return nil, fmt.Errorf("ready file %s: %w", ready, err)
	}
	o.use(at)
	s, err := connect(ctx, o)
	if err != nil {
		return nil, fault.Userf("the stack of %s is not running; `restar run` or `restar dev` starts it, and runs go on from where they were", o.Dir)
	}
	s.UI = at.UI
	return s, nil
}

// Running tells whether a process owns the embedded stack of a folder.
func Running(dir string) bool {
	f, err := os.Open(filepath.Join(dir, "restar.lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// ownerEvery is the pause between two looks for the owner of a stack that was joined.
const ownerEvery = time.Second

// join ends the session's guarded contexts when the command that runs the stack leaves. The folder tells: it stays locked
// across deaths of the server, and another command that takes it over at once brings the same addresses back.
func (s *Session) join(dir string) {
	ctx, cancel := context.WithCancel(context.Background())
	s.failed = make(chan error, 1)
	s.closers = append(s.closers, func() error { cancel(); return nil })
	go func() {
		tick := time.NewTicker(ownerEvery)
		defer tick.Stop()
		for Running(dir) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		s.failed <- fault.Userf("the stack of %s ended with the command that ran it; give the same command again: it starts the stack, and runs go on from where they were", dir)
	}()
}

// use points the options at a stack.
func (o *Options) use(at local.Endpoints) {
	o.Temporal, o.Namespace = at.Temporal, at.Namespace
	o.S3, o.Bucket, o.accessKey, o.secretKey = at.S3, at.Bucket, at.AccessKey, at.SecretKey
}

// environment hands the stack to a worker process; nothing secret appears on a command line.
func (o Options) environment() []string {
	return []string{
		"RESTAR_RANKS=" + strconv.Itoa(o.Ranks),
		"RESTAR_TEMPORAL=" + o.Temporal, "RESTAR_NAMESPACE=" + o.Namespace, "RESTAR_S3_ENDPOINT=" + o.S3, "RESTAR_BUCKET=" + o.Bucket,
		"AWS_REGION=" + o.Region, "AWS_ACCESS_KEY_ID=" + o.accessKey, "AWS_SECRET_ACCESS_KEY=" + o.secretKey,
	}
}

// startWorkers supervises the worker processes until the session is closed. What workers of a former session left open is
// failed first, so that it is retried at once.
func (s *Session) startWorkers(ctx context.Context, stack *local.Stack, o Options) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	left, err := local.TakeAllTokens(stack.Dir())
	if err != nil {
		return err
	}
	if _, err := local.FailActivities(ctx, s.Client, left); err != nil {
		return err
	}
	supervisor := stack.Supervisor()
	supervisor.OnExit = func(ctx context.Context, c local.Child) { s.release(ctx, stack.Dir(), c.Name) }
	var children []local.Child
	for _, w := range workerProcesses {
		children = append(children, local.Child{
			Name: w.name, Env: o.environment(), LogFile: filepath.Join(stack.Dir(), "logs", w.name+".log"),
			Args: []string{self, "worker", "--roles", w.roles, "--name", w.name, "--dir", stack.Dir()},
		})
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // an interrupt ends workers through Close, in order
	s.failed = make(chan error, 2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := supervisor.Supervise(ctx, children); err != nil {
			s.failed <- err
		}
	}()
	go func() {
		<-stack.Done()
		if err := stack.Err(); err != nil {
			s.failed <- err
		}
	}()
	s.closers = append([]func() error{func() error { cancel(); <-done; return nil }}, s.closers...)
	return nil
}

// release fails what a dead worker left open. That it may not succeed is no fault: the heartbeat timeout does the same later.
func (s *Session) release(ctx context.Context, dir, worker string) {
	open, err := local.TakeTokens(local.TokensFile(dir, worker))
	if err != nil {
		return
	}
	go func() { _, _ = local.FailActivities(ctx, s.Client, open) }()
}

// Guard returns a context that also ends, with the reason as its cause, when the stack or a worker cannot be kept up.
func (s *Session) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-s.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Ended tells why a guarded context ended: an interrupt, or a stack that cannot be kept up.
func Ended(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return fault.ErrInterrupted
}
