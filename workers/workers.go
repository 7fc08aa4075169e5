// Package workers runs the roles of restar: what each does, and on which task queue.
//
// A worker holds nothing that is not in the store or in Temporal's history. Start as many of a role as there are machines
// for it; kill any of them at any moment. Roles of one process share its memory, no more.
package workers

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/ranks"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workflows"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
)

// Role is a kind of work; it is also the name of its task queue.
type Role string

// The roles.
const (
	Orchestrator Role = activities.QueueOrchestrator // workflows: decides, holds no data
	CPU          Role = activities.QueueCPU          // curation, selection, scoring, reports
	Rollout      Role = activities.QueueRollout      // the engine and the sandbox
	Trainer      Role = activities.QueueTrainer      // the optimizer
)

// Roles lists all roles.
func Roles() []Role { return []Role{Orchestrator, CPU, Rollout, Trainer} }

// ParseRole reads a role's name.
func ParseRole(name string) (Role, error) {
	if !slices.Contains(Roles(), Role(name)) {
		return "", fmt.Errorf("role is %q, want one of %v", name, Roles())
	}
	return Role(name), nil
}

// Options say what a worker process does and where its work comes from.
type Options struct {
	Roles        []Role
	Client       client.Client
	Store        store.Store
	Interceptors []interceptor.WorkerInterceptor
	Faults       store.Faults // told of named points; nil in production
	Log          *slog.Logger
	KVBytes      int      // memory for the KV cache of one policy; 0 is DefaultKVBytes
	Sandboxes    []string // base URLs of sandbox services that run tool calls; none: as the recipe says
	// Ranks is the number of processes that share a trainer's steps: 1 (or 0), 2, 4 or 8. RankCommand starts one of them.
	Ranks       int
	RankCommand []string
}

// DefaultKVBytes holds a full batch of the quickstart's model (256 sequences of 500 tokens at 2 KiB), twice over two policies,
// well inside a small machine.
const DefaultKVBytes = 256 << 20

const (
	// SlicesAtOnce fills the engine's batch of 256 rows with slices of 8 samples; more would only wait for blocks.
	SlicesAtOnce = 32
	// drain is how long a stopping worker lets activities end on their own; they go on elsewhere otherwise.
	drain = 2 * time.Second
	// heartbeatThrottle lets cancellation and progress through promptly; the SDK's default holds beats for up to a minute.
	heartbeatThrottle = 2 * time.Second
)

// Run works until ctx ends, which is no error.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	host, closeHost := o.host()
	defer closeHost()
	var started []worker.Worker
	defer func() {
		for _, w := range started {
			w.Stop()
		}
	}()
	fatal := make(chan error, len(o.Roles))
	for _, role := range o.Roles {
		w := worker.New(o.Client, string(role), o.options(role, fatal))
		host.register(role, w)
		if err := w.Start(); err != nil {
			return fmt.Errorf("start the %s worker: %w", role, err)
		}
		started = append(started, w)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return err
	}
}

func (o Options) check() error {
	if len(o.Roles) == 0 {
		return fmt.Errorf("no role given, want some of %v", Roles())
	}
	if o.Ranks > 1 {
		if err := (ranks.Processes{Count: o.Ranks}).Check(); err != nil {
			return err
		}
	}
	if model.NumericsID() == "" {
		return fmt.Errorf("this processor lacks the instruction path that RESTAR_CPU_ISA asks for: unset it")
	}
	return nil
}

func (o Options) options(role Role, fatal chan<- error) worker.Options {
	out := worker.Options{
		Identity:                         identity(role),
		Interceptors:                     append([]interceptor.WorkerInterceptor{&mendable{}}, o.Interceptors...),
		WorkerStopTimeout:                drain,
		MaxHeartbeatThrottleInterval:     heartbeatThrottle,
		DefaultHeartbeatThrottleInterval: heartbeatThrottle,
		OnFatalError:                     func(err error) { fatal <- fmt.Errorf("%s worker: %w", role, err) },
	}
	switch role {
	case Rollout:
		out.MaxConcurrentActivityExecutionSize = SlicesAtOnce
	case Trainer:
		out.MaxConcurrentActivityExecutionSize = 4 // a step, its checkpoint, and room for timed-out attempts to notice
	}
	return out
}

// identity shows in the UI who works.
func identity(role Role) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s@%s/%d", role, host, os.Getpid())
}

// host holds what the roles of one process share.
type host struct {
	cur *activities.Curation
	tr  *activities.Trainer
	ro  *activities.Rollouts
	sel *activities.Selection
	sco *activities.Scoring
}

func (o Options) host() (*host, func()) {
	s := store.WithFaults(o.Store, o.Faults)
	runs := &activities.Runs{Store: s, NumericsOf: model.NumericsOf}
	bytes := o.KVBytes
	if bytes == 0 {
		bytes = DefaultKVBytes
	}
	engines := &activities.Engines{Policies: &activities.Policies{Runs: runs, Store: s}, Options: engine.Options{}, KVBytes: bytes}
	pools := &activities.Pools{Log: o.Log, Endpoints: o.Sandboxes}
	h := &host{
		cur: &activities.Curation{Runs: runs, Store: s},
		tr:  &activities.Trainer{Runs: runs, Store: s, Owner: identity(Trainer), Faults: o.Faults},
		ro:  &activities.Rollouts{Runs: runs, Store: s, Engines: engines, Pools: pools, Faults: o.Faults},
		sel: &activities.Selection{Runs: runs, Store: s, Faults: o.Faults},
		sco: &activities.Scoring{Runs: runs, Store: s},
	}
	if o.Ranks > 1 {
		h.tr.Ranks = ranks.Processes{Count: o.Ranks, Command: o.RankCommand, Log: os.Stderr}
	}
	return h, func() { engines.Close(); pools.Close() }
}

func (h *host) register(role Role, w worker.Worker) {
	switch role {
	case Orchestrator:
		workflows.Register(w)
	case CPU:
		w.RegisterActivity(h.cur)
		w.RegisterActivity(h.sel)
		w.RegisterActivity(h.sco)
	case Rollout:
		w.RegisterActivity(h.ro)
	case Trainer:
		w.RegisterActivity(h.tr)
	}
}
