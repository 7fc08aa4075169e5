package service

import (
	"context"
	"fmt"
)

// drain takes nothing new, rejects what waits, and returns when the running calls have ended or ctx has, which kills them.
func (d *desk) drain(ctx context.Context) error {
	d.mu.Lock()
	d.draining = true
	for c := range d.queues {
		for t := d.queues[c].pop(); t != nil; t = d.queues[c].pop() {
			d.queues[c].size++ // withdrawLocked counts it out
			d.withdrawLocked(t, errDraining)
		}
	}
	left := d.running
	d.mu.Unlock()
	idle := make(chan struct{})
	go func() { d.runs.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	d.end(fmt.Errorf("%w: %w", errDraining, context.Cause(ctx)))
	<-idle
	return fmt.Errorf("%d calls ran when draining began and some had not ended: %w", left, context.Cause(ctx))
}

func (d *desk) isDraining() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.draining
}
