package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// stopAt is what the command says when the run is well past checkpoints that are pruned by now. Its lines come at intervals, so
	// it may be at the stage's filter or at a step.
	stopAt = "stage2: "
	// stopWait bounds the wait for stopAt: many times what the whole run takes.
	stopWait = 5 * time.Minute
)

// halt plays the run, stops it in its last stage as a user would, and gives the same command again.
func (t *trial) halt(ctx context.Context) error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	begin := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- t.once(ctx, nil, &hunter{trial: t, begin: begin}) }()
	if err := t.stopInLastStage(ctx, ended); err != nil {
		return err
	}
	if err := t.once(ctx, nil, &hunter{trial: t, begin: begin}); err != nil {
		return fmt.Errorf("the command given again after a stop: %w\n%s", err, t.tail())
	}
	t.took = time.Since(begin)
	return nil
}

// stopInLastStage asks for the stop once the last stage is at work, and waits for the command to end in good order.
func (t *trial) stopInLastStage(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopWait, fmt.Errorf("the run did not reach %q in %v", stopAt, stopWait))
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-ended:
			return fmt.Errorf("the run ended before it was stopped (%v)\n%s", err, t.tail())
		case <-tick.C:
		}
		if !strings.Contains(t.tail(), stopAt) {
			continue
		}
		tick.Stop()
		if out, err := exec.CommandContext(ctx, t.binary, "stop", runName, "--dir", t.dir).CombinedOutput(); err != nil {
			return fmt.Errorf("restar stop: %w: %s", err, out)
		}
		return <-ended
	}
}
