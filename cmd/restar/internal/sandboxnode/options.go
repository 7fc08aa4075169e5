// Package sandboxnode runs one sandbox service as a process, and tells what isolation its machine gives.
package sandboxnode

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service"
	"github.com/restar-rl/restar/workers/telemetry"
	"github.com/spf13/pflag"
)

// Options are those of a node.
type Options struct {
	Listen    string
	Isolation string
	Preload   string
	Node      string
	Telemetry string
	JSON      bool
	Insecure  bool
	Texts     sandbox.Texts

	Running, Zygotes, Warm int
	MemoryMB, Pids         int
	Queue                  int
	HoldMB                 int64
	JudgeLimit             time.Duration
	StreamChars            int
	QueueLife              time.Duration
	BatchDeadline          time.Duration
	Drain                  time.Duration
}

// Register adds the flags.
func (o *Options) Register(fs *pflag.FlagSet) {
	fs.StringVar(&o.Listen, "listen", "127.0.0.1:8088", "address to listen on; there is no authentication, so open it to the rollout workers only")
	fs.StringVar(&o.Isolation, "isolation", "A", "least isolation accepted: A (memory cgroups) or B (limits by process)")
	fs.BoolVar(&o.Insecure, "insecure", false, "run programs without any isolation, with a warning for each call: for a laptop whose owner trusts the model; recipes refuse such a node")
	fs.StringVar(&o.Preload, "preload", "scientific", "what calls find imported: scientific (numpy, scipy, sympy), lite (standard modules) or a comma-separated list of modules")
	fs.StringVar(&o.Node, "node", "", "name of this node in results (default: the host's name)")
	fs.StringVar(&o.Telemetry, "telemetry", telemetry.ExporterNone, "where OpenTelemetry spans go: none or stdout")
	fs.StringVar(&o.Texts.Located, "text-located", sandbox.DefaultTexts().Located, "what a program's exception leaves on stderr where a line of it is to blame; {type}, {line}, {message} and {source} are filled in")
	fs.StringVar(&o.Texts.Unlocated, "text-unlocated", sandbox.DefaultTexts().Unlocated, "the same where no line is")
	fs.BoolVar(&o.Texts.Traceback, "traceback", false, "leave CPython's own traceback on stderr instead")
	fs.BoolVar(&o.JSON, "json", false, "say where the service listens as JSON")
	fs.IntVar(&o.Running, "running", 0, "calls running at once, at least 3 (default: two for every core)")
	fs.IntVar(&o.Zygotes, "zygotes", 0, "warm interpreters of each kind that calls are forked from (default: one for every two cores)")
	fs.IntVar(&o.Warm, "warm", 0, "calls of each kind forked ahead (default: one for every core and one more)")
	fs.IntVar(&o.MemoryMB, "memory-mb", 256, "memory of one call, MiB")
	fs.IntVar(&o.Pids, "pids", 64, "processes and threads of one call")
	fs.IntVar(&o.Queue, "queue", 0, "calls that may wait (default 16384); more are answered with 429")
	fs.Int64Var(&o.HoldMB, "hold-mb", 512, "memory held for clients (bodies, waiting calls, kept results), MiB; more is answered with 429")
	fs.DurationVar(&o.JudgeLimit, "judge-limit", 4*time.Second, "time limit of a call of the code-judge interface (MAX_EXECUTION_TIME)")
	fs.IntVar(&o.StreamChars, "judge-stream-chars", 1000, "characters kept of stdout and stderr there (MAX_STDOUT_ERROR_LENGTH)")
	fs.DurationVar(&o.QueueLife, "judge-queue-life", 15*time.Second, "longest wait of a call there before queue_timeout; long batches wait until their deadline")
	fs.DurationVar(&o.BatchDeadline, "judge-batch-deadline", 55*time.Second, "when a long batch is answered at the latest, with queue_timeout for what has not ended; below the client's own time-out")
	fs.DurationVar(&o.Drain, "drain", 70*time.Second, "how long running calls may take to end after SIGTERM")
}

// modules is the preload list.
func (o Options) modules() []string {
	switch o.Preload {
	case "scientific":
		return sandbox.Scientific()
	case "lite":
		return sandbox.Lite()
	}
	return strings.FieldsFunc(o.Preload, func(r rune) bool { return r == ',' || r == ' ' })
}

func (o Options) check() error {
	if o.Isolation != string(sandbox.TierA) && o.Isolation != string(sandbox.TierB) {
		return fault.Userf("--isolation is %q, expected A or B", o.Isolation)
	}
	for name, v := range map[string]time.Duration{"judge-limit": o.JudgeLimit, "judge-queue-life": o.QueueLife, "judge-batch-deadline": o.BatchDeadline, "drain": o.Drain} {
		if v <= 0 {
			return fault.Userf("--%s is %v, expected more than 0", name, v)
		}
	}
	if o.Running != 0 && o.Running < 3 {
		return fault.Userf("--running is %d, expected at least 3: one for each class of calls", o.Running)
	}
	if o.HoldMB < 1 || o.Queue < 0 || o.StreamChars < 1 {
		return fault.Userf("--hold-mb, --queue and --judge-stream-chars are %d, %d and %d, expected at least 1, 0 and 1", o.HoldMB, o.Queue, o.StreamChars)
	}
	return nil
}

// running is the number of calls at once: two for every core, since some wait for time or input.
func (o Options) running() int {
	if o.Running > 0 {
		return o.Running
	}
	return max(3, 2*runtime.GOMAXPROCS(0))
}

func (o Options) pool(log *slog.Logger) sandbox.Options {
	return sandbox.Options{Tier: sandbox.Tier(o.Isolation), Preload: o.modules(), Zygotes: o.Zygotes, Warm: o.Warm, MaxRunning: o.running(), Log: log, Insecure: o.Insecure,
		Limits: sandbox.Limits{CPU: o.JudgeLimit, Wall: o.JudgeLimit, MemoryMB: o.MemoryMB, Pids: o.Pids}, Texts: o.Texts}
}

func (o Options) service(pool *sandbox.Pool, log *slog.Logger, tel *telemetry.Telemetry) service.Options {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newPoolCollector(pool))
	return service.Options{
		Runner: pool, Sessions: pool, Running: o.running(), Node: o.Node, Tier: pool.Status().Tier, Healthy: func() error { return healthy(pool) },
		Limits: sandbox.Limits{MemoryMB: o.MemoryMB, Pids: o.Pids}, MaxQueued: o.Queue, MaxBytes: o.HoldMB << 20, Log: log, Tracer: tel.Tracer, Registry: registry,
		Judge: service.JudgeOptions{Limits: sandbox.Limits{CPU: o.JudgeLimit, Wall: o.JudgeLimit, MemoryMB: o.MemoryMB, Pids: o.Pids},
			StreamChars: o.StreamChars, QueueLife: o.QueueLife, BatchDeadline: o.BatchDeadline},
	}
}

// healthy tells a pool that cannot run calls: none of its interpreters lives. An insecure one has none.
func healthy(p *sandbox.Pool) error {
	if s := p.Status(); s.Zygotes == 0 && s.Tier != sandbox.TierNone {
		return fmt.Errorf("no interpreter is up; %d were started again so far", s.Restarts)
	}
	return nil
}

func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
