package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Call is one execution of a Python program.
type Call struct {
	ID     string // names the call in errors; not seen by the program
	Code   string // source text, UTF-8
	Stdin  string // whole standard input; never part of the request the interpreter reads
	Limits Limits // zero fields take the pool's defaults
	Seed   uint64 // seeds random, numpy.random and os.urandom; of a cell: left unread, the session has its own
}

// Limits bounds one call. A zero field means the pool's default.
type Limits struct {
	CPU      time.Duration // CPU time of the whole process tree
	Wall     time.Duration // CPU time plus wall time in which no thread wanted a CPU
	MemoryMB int           // private memory beyond the zygote's, MiB; a single process sees MemoryError
	Pids     int           // processes and threads
	Cores    int           // of CPU bandwidth for the whole tree, where a cpu cgroup can be had
	TmpKB    int           // /tmp and /dev/shm together, KiB; also the largest file
	OutputKB int           // kept of stdout and of stderr each, KiB
}

// DefaultLimits are code-judge's README settings (4 s, 256 MiB) where it has one.
var defaultLimits = Limits{
	CPU: 4 * time.Second, Wall: 6 * time.Second, MemoryMB: 256, Pids: 64, Cores: 1, TmpKB: 16 << 10, OutputKB: 64,
}

// DefaultLimits returns the limits of a pool whose options leave them out: 4 s CPU, 6 s wall, 256 MiB, 64 processes on one
// core, 16 MiB of files, 64 KiB of each output.
func DefaultLimits() Limits { return defaultLimits }

// ClassLimits returns the time limits of a native class: S is 5 s, M is 30 s, L is 60 s, of CPU and of wall time alike. The
// other fields are zero, so that they take the pool's defaults.
func ClassLimits(class string) (Limits, error) {
	seconds, ok := map[string]time.Duration{"S": 5, "M": 30, "L": 60}[class]
	if !ok {
		return Limits{}, fmt.Errorf("sandbox: class is %q, expected S (5 s), M (30 s) or L (60 s)", class)
	}
	return Limits{CPU: seconds * time.Second, Wall: seconds * time.Second}, nil
}

func (l Limits) withDefaults(d Limits) Limits {
	return Limits{
		CPU: cmp.Or(l.CPU, d.CPU), Wall: cmp.Or(l.Wall, d.Wall), MemoryMB: cmp.Or(l.MemoryMB, d.MemoryMB),
		Pids: cmp.Or(l.Pids, d.Pids), Cores: cmp.Or(l.Cores, d.Cores), TmpKB: cmp.Or(l.TmpKB, d.TmpKB), OutputKB: cmp.Or(l.OutputKB, d.OutputKB),
	}
}

func (l Limits) validate() error {
	for _, f := range []struct {
		name            string
		value, min, max int64
	}{
		{"CPU", int64(l.CPU), int64(10 * time.Millisecond), int64(longestCall)},
		{"Wall", int64(l.Wall), int64(10 * time.Millisecond), int64(longestCall)},
		{"MemoryMB", int64(l.MemoryMB), 8, 1 << 20},
		{"Pids", int64(l.Pids), 1, 32768},
		{"Cores", int64(l.Cores), 1, 1024},
		{"TmpKB", int64(l.TmpKB), 64, 64 << 20},
		{"OutputKB", int64(l.OutputKB), 1, 64 << 10},
	} {
		if f.value < f.min || f.value > f.max {
			return fmt.Errorf("sandbox: Limits.%s is %d, expected %d to %d", f.name, f.value, f.min, f.max)
		}
	}
	return nil
}

// longestCall bounds the time limits of a call.
const longestCall = time.Hour

// slotLimits is the part of the limits that is built into a slot when it is forked.
func (l Limits) slotLimits() Limits {
	l.CPU, l.Wall, l.OutputKB = 0, 0, 0
	return l
}

// Status says how the program ended. Infrastructure failures are errors, never a Status.
type Status string

// The ends a program can have.
const (
	Success     Status = "success"      // exit code 0
	Error       Status = "error"        // another exit code: exception, sys.exit, MemoryError
	Timeout     Status = "timeout"      // a CPU or wall limit
	OOM         Status = "oom"          // the tree used more memory than allowed and was killed
	Killed      Status = "killed"       // a signal of its own making
	OutputLimit Status = "output_limit" // it kept writing far beyond what is kept, and was killed
)

// Result is what a program did.
type Result struct {
	Status          Status
	ExitCode        int    // meaningless unless Signal is 0
	Signal          int    // signal that ended the program, 0 for none
	Stdout, Stderr  string // valid UTF-8, at most OutputKB each; an exception's text is exactly Stderr
	StdoutTruncated bool
	StderrTruncated bool
	StdoutBytes     int64         // written in all, also what was not kept
	StderrBytes     int64         // the same of stderr
	CPU             time.Duration // of the whole process tree
	InitCPU         time.Duration // of building its namespaces and reaping it, not the program's doing; 0 if killed
	Wall            time.Duration // from the request to the last byte of output
	Queue           time.Duration // from Run to the request
	PeakKB          int64         // largest resident set of one process, KiB, shared pages of the zygote included; 0 if killed
	Faults          int64         // minor page faults of the tree and its init; 0 if killed
	Tier            Tier          // isolation the call ran in
	Profile         string        // of the zygote it was forked from, "" in an insecure pool
	SessionEnded    bool          // this was a cell, and its session is over
}

// Runner runs calls. Implementations are safe for concurrent use.
type Runner interface {
	// Run executes one call. An error means that nothing is known about the program: it matches [ErrInfrastructure] when the
	// call may be repeated, or it is ctx's error, or names an invalid limit.
	Run(ctx context.Context, c Call) (Result, error)
}

// ErrInfrastructure matches every failure of the sandbox itself; the call may be repeated.
var ErrInfrastructure = errors.New("sandbox infrastructure failure")

// ErrClosed is returned by a pool after Close.
var ErrClosed = errors.New("sandbox: pool is closed")

func infrastructure(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInfrastructure, fmt.Errorf(format, args...))
}
