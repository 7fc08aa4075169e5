// Command restar-chaos kills a training run again and again and proves that nothing was lost.
//
// It runs a small recipe undisturbed, then runs it again while it kills processes with SIGKILL: the whole tree and each
// process alone, at named points of the code and at seeded moments; two processes share its optimizer steps, one those of the
// undisturbed run. After every kill the same command goes on. At the end
// the canonical content of both runs must be the same to the bit, and the audit log must count no trajectory sampled
// again after it was final and no optimizer step applied twice. A third run is stopped by its user and started again, and
// must end with the same content too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	o := options{}
	flag.StringVar(&o.binary, "restar", "bin/restar", "the restar binary")
	flag.StringVar(&o.recipe, "recipe", "deploy/recipes/chaos.yaml", "the recipe to run")
	flag.StringVar(&o.dir, "dir", "", "folder for the runs' data (default: a temporary one, removed at the end)")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the moments of the kills")
	flag.IntVar(&o.seeded, "seeded", len(namedPoints), "kills at seeded moments; by default as many as at named points")
	flag.StringVar(&o.figures, "figures", ".bench/chaos-short.json", "where the figures go")
	flag.DurationVar(&o.deadline, "deadline", 20*time.Minute, "the longest the whole test may take")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, o.deadline, fmt.Errorf("chaos test not done after %v", o.deadline))
	defer cancel()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "restar-chaos:", err)
		os.Exit(1)
	}
}

// options are what the test runs on.
type options struct {
	binary, recipe, dir, figures string
	seed                         uint64
	seeded                       int
	deadline                     time.Duration
}

func (o *options) run(ctx context.Context) error {
	if err := o.resolve(); err != nil {
		return err
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "restar-chaos-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	calm := &trial{options: o, dir: filepath.Join(o.dir, "calm")}
	if err := calm.play(ctx, nil); err != nil {
		return fmt.Errorf("undisturbed run: %w", err)
	}
	fmt.Printf("undisturbed run: %.0f s\n", calm.took.Seconds())
	storm := &trial{options: o, dir: filepath.Join(o.dir, "storm"), ranks: 2}
	if err := storm.play(ctx, plan(o.seed, o.seeded, calm.took)); err != nil {
		return fmt.Errorf("disturbed run: %w", err)
	}
	fmt.Printf("disturbed run: %.0f s, %d kills\n", storm.took.Seconds(), len(storm.killed))
	verdict, err := compare(ctx, calm, storm)
	if err != nil {
		return err
	}
	halted := &trial{options: o, dir: filepath.Join(o.dir, "halted")}
	if err := halted.halt(ctx); err != nil {
		return fmt.Errorf("stopped run: %w", err)
	}
	if err := verdict.addHalted(ctx, halted); err != nil {
		return err
	}
	fmt.Printf("run stopped in its last stage and started again: %.0f s\n", halted.took.Seconds())
	verdict.print()
	return errors.Join(verdict.write(o.figures), verdict.check())
}

func (o *options) resolve() error {
	for _, p := range []*string{&o.binary, &o.recipe, &o.figures} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	for _, p := range []string{o.binary, o.recipe} {
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("%w (build with: make build)", err)
		}
	}
	return nil
}
