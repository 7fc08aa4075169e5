package activities

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
)

const (
	// beatEvery is a quarter of the 20 s heartbeat time-out, so that three beats may be late.
	beatEvery = 5 * time.Second
	// stallLimit ends an attempt that makes no progress: a hung process must not keep its work by ticking.
	stallLimit = 15 * time.Minute
)

// errStalled is why an attempt without progress ends.
var errStalled = errors.New("no progress")

// pulse tells the server that an attempt lives, for as long as it makes progress.
type pulse struct{ count atomic.Int64 }

// step records that something was finished.
func (p *pulse) step() { p.count.Add(1) }

// beat heartbeats until the returned stop is called. The returned context ends when the attempt stalls.
func beat(ctx context.Context) (context.Context, *pulse, func()) {
	p := &pulse{}
	ctx, cancel := context.WithCancelCause(ctx)
	go p.run(ctx, cancel)
	return ctx, p, func() { cancel(nil) }
}

func (p *pulse) run(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	seen, since := p.count.Load(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if n := p.count.Load(); n != seen {
				seen, since = n, now
			}
			if now.Sub(since) > stallLimit {
				cancel(fmt.Errorf("%w in %v after %d finished parts", errStalled, stallLimit, seen))
				return
			}
			activity.RecordHeartbeat(ctx, seen)
		}
	}
}
