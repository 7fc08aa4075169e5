package sandboxbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service"
)

// NodeOptions are those of a service that the benchmark starts for itself.
type NodeOptions struct {
	Listen  string
	Wait    time.Duration // an executor in process that takes this long and answers with what it was given
	Running int
	Pool    string // or a real pool of this tier
	Without bool   // with the layers left out that can be
}

// Node serves until ctx ends.
func Node(ctx context.Context, o NodeOptions) error {
	so := service.Options{Running: o.Running, Node: "bench", Tier: sandbox.TierB, MaxQueued: 1 << 17, MaxBytes: 4 << 30}
	if o.Pool != "" {
		po := sandbox.Options{Tier: sandbox.Tier(o.Pool), Preload: sandbox.Scientific()}
		if o.Without {
			po.Insecure, po.Without = true, sandbox.Layers{Seccomp: true, Landlock: true, Cgroups: true}
		}
		pool, err := sandbox.Start(ctx, po)
		if err != nil {
			return err
		}
		defer pool.Close()
		so.Runner, so.Running = pool, pool.Status().MaxRunning
	} else {
		so.Runner = sleeper(o.Wait)
	}
	s, err := service.New(so)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return err
	}
	if err := s.Serve(ctx, l, downTimeout); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("bench node: %w", err)
	}
	return nil
}

// sleeper is an executor of fixed duration. What it answers depends on the program, so that mixed-up answers are seen.
type sleeper time.Duration

// Run implements sandbox.Runner.
func (s sleeper) Run(ctx context.Context, c sandbox.Call) (sandbox.Result, error) {
	began := time.Now()
	select {
	case <-ctx.Done():
		return sandbox.Result{}, ctx.Err()
	case <-time.After(time.Duration(s)):
	}
	return sandbox.Result{Status: sandbox.Success, Stdout: "ran " + c.Code, Wall: time.Since(began), Tier: sandbox.TierB}, nil
}
