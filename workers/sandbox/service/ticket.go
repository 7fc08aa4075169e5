package service

import (
	"context"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
)

// state of a ticket; guarded by the desk's mutex.
type state int

const (
	waiting state = iota
	running
	ended
)

// ticket is one accepted call and everyone who waits for it.
type ticket struct {
	key     string // idempotency key, "" for a call that cannot be joined
	digest  digest // of what was asked
	rollout string
	class   class
	call    sandbox.Call   // emptied at the end
	on      sandbox.Runner // a session; nil for the pool
	bytes   int64          // charged to the budget
	startBy time.Time      // leaves the queue unstarted then; zero for never
	endBy   time.Time      // is killed then; zero for never
	ctx     context.Context
	cancel  context.CancelCauseFunc
	begun   time.Time

	// Guarded by the desk's mutex.
	state   state
	waiters int
	grace   *time.Timer // until a ticket without waiters is cancelled
	expiry  *time.Timer // at startBy

	done    chan struct{} // closed at the end, after outcome is set
	outcome outcome
}

// outcome is how a ticket ended.
type outcome struct {
	result   sandbox.Result
	status   string // a sandbox.Status, or one of package wire
	reason   string
	retry    bool // may be sent again
	attempts int
	queue    time.Duration
	run      time.Duration
}

func (o outcome) size() int64 { return int64(len(o.result.Stdout)+len(o.result.Stderr)) + ticketBytes }

// ticketBytes is charged for a ticket beside its texts: the struct, its context and timers, map entries, and the goroutine and
// connection that wait for it.
const ticketBytes = 24 << 10
