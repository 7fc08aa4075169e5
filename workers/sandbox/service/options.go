package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/restar-rl/restar/workers/sandbox"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Options configures a service. Zero fields take the defaults named.
type Options struct {
	Runner  sandbox.Runner // required: what executes calls
	Running int            // calls that the runner executes at once, at least 3; default two for every core
	Limits  sandbox.Limits // of native calls that leave them out; default class S and sandbox.DefaultLimits
	Node    string         // name of this node in results; default the host's name
	Tier    sandbox.Tier   // isolation that calls get, told to clients
	// Sessions opens sessions; nil serves none. *sandbox.Pool does.
	Sessions Sessions
	// Healthy says why the runner cannot serve, nil where it can. Default: always healthy.
	Healthy func() error

	MaxQueued   int           // waiting calls, default 16384
	MaxBytes    int64         // memory held for clients, default 512 MiB
	MaxBody     int64         // of one request, default 64 MiB
	MinFree     int64         // memory of the machine that must stay available, default 256 MiB
	KeepFor     time.Duration // results under an idempotency key, default 10 min
	KeepBytes   int64         // of kept results, part of MaxBytes; default a quarter of it
	Grace       time.Duration // until a call that nobody waits for is killed, default 2 s
	Attempts    int           // runs of a call whose sandbox fails, default 3
	Judge       JudgeOptions
	Log         *slog.Logger
	Tracer      trace.Tracer
	Registry    *prometheus.Registry  // where metrics go and /metrics reads; default one of its own
	memoryBytes func() (int64, error) // available memory; for tests
}

// Sessions opens sessions: processes that keep their state from cell to cell.
type Sessions interface {
	Open(ctx context.Context, o sandbox.SessionOptions) (sandbox.Session, error)
}

// JudgeOptions configures the code-judge face. The defaults are rStar2's deployment of it.
type JudgeOptions struct {
	Limits sandbox.Limits // of every call; default 4 s CPU and wall (MAX_EXECUTION_TIME=4), 256 MiB
	// StreamChars cuts stdout and stderr, in code points (MAX_STDOUT_ERROR_LENGTH); default 1000.
	StreamChars int
	// QueueLife is how long a call of /run, /judge and the short batches waits before it is answered with queue_timeout. Default
	// 15 s: code-judge discards after 4 s but answers after MAX_EXECUTION_TIME+5+4, so its clients are used to waiting that long.
	QueueLife time.Duration
	// BatchDeadline is when a long batch is answered, with queue_timeout for what has not ended; default 55 s. rStar2's client
	// gives up after 60 s and would lose every result of the batch; it submits queue_timeout again, and so attaches to the call.
	BatchDeadline time.Duration
}

func (o Options) resolve() (Options, error) {
	if o.Runner == nil {
		return o, errors.New("service: no runner: give a sandbox.Pool")
	}
	o.Running = cmp.Or(o.Running, max(3, 2*runtime.GOMAXPROCS(0)))
	if o.Running < 3 {
		return o, fmt.Errorf("service: running is %d, expected at least 3: one for each class", o.Running)
	}
	if o.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("service: the host has no name: %w; give the node's name", err)
		}
		o.Node = name
	}
	o.Limits = complete(o.Limits, sandbox.Limits{CPU: short.limit(), Wall: short.limit()}, sandbox.DefaultLimits())
	o.MaxQueued = cmp.Or(o.MaxQueued, 16384)
	o.MaxBytes = cmp.Or(o.MaxBytes, 512<<20)
	o.MaxBody = cmp.Or(o.MaxBody, 64<<20)
	o.MinFree = cmp.Or(o.MinFree, 256<<20)
	o.KeepFor = cmp.Or(o.KeepFor, 10*time.Minute)
	o.KeepBytes = cmp.Or(o.KeepBytes, o.MaxBytes/4)
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	o.Attempts = cmp.Or(o.Attempts, 3)
	o.Judge = o.Judge.resolve()
	if o.Healthy == nil {
		o.Healthy = func() error { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if o.memoryBytes == nil {
		o.memoryBytes = availableMemory
	}
	if o.MaxBytes < 1<<20 || o.MaxQueued < 1 || o.MaxBody < 1<<10 || o.Attempts < 1 {
		return o, fmt.Errorf("service: max bytes, queued, body and attempts are %d, %d, %d and %d, expected at least 1 MiB, 1, 1 KiB and 1", o.MaxBytes, o.MaxQueued, o.MaxBody, o.Attempts)
	}
	return o, nil
}

func (o JudgeOptions) resolve() JudgeOptions {
	o.Limits = complete(o.Limits, sandbox.Limits{CPU: 4 * time.Second, Wall: 4 * time.Second}, sandbox.DefaultLimits())
	o.StreamChars = cmp.Or(o.StreamChars, 1000)
	o.QueueLife = cmp.Or(o.QueueLife, 15*time.Second)
	o.BatchDeadline = cmp.Or(o.BatchDeadline, 55*time.Second)
	return o
}

// complete fills the zero fields of l from each of the others in turn.
func complete(l sandbox.Limits, others ...sandbox.Limits) sandbox.Limits {
	for _, d := range others {
		l = l.WithDefaults(d)
	}
	return l
}

// check refuses limits that no class holds.
func (o JudgeOptions) check() error {
	if _, err := classOf(o.Limits); err != nil {
		return fmt.Errorf("service: judge: %w", err)
	}
	return o.Limits.Validate()
}
