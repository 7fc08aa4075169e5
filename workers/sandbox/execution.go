package sandbox

import (
	"context"
	"encoding/binary"
	"io"
	"sync/atomic"
	"time"
)

const (
	// sampleEvery is how often a running call is looked at. Calls that end before the first look cost nothing.
	sampleEvery = 100 * time.Millisecond
	// teardownDeadline is how long the kernel may take to end a killed namespace before the slot is given up.
	teardownDeadline = 30 * time.Second
)

// ending is why the pool killed a call; ranAlone means that it ended by itself.
type ending int

const (
	ranAlone ending = iota
	timeLimit
	starvation
	outputFlood
	memoryLimit
	cancelled
)

// execution is one call on one slot.
type execution struct {
	slot     *slot
	call     Call // limits resolved
	began    time.Time
	stdout   output
	stderr   output
	status   []byte
	clock    clock
	meter    *meter
	flooded  atomic.Bool
	streams  chan struct{} // one value for each stream that has ended
	kill     ending
	finished bool // every stream ended
}

// execute runs c on the slot and uses it up. The caller gets the seat back only if gone is true.
func execute(ctx context.Context, sl *slot, c Call) (res Result, gone bool, err error) {
	e := &execution{slot: sl, call: c, began: time.Now(), clock: clock{limits: c.Limits}, meter: newMeter(sl), streams: make(chan struct{}, 3)}
	defer sl.close()
	e.start()
	e.watch(ctx)
	gone = e.settle()
	if !gone {
		return res, false, infrastructure("call %s: the kernel did not end its processes within %v", c.ID, teardownDeadline)
	}
	res, err = e.result()
	if e.kill == cancelled {
		err = ctx.Err()
	}
	return res, true, err
}

func (e *execution) start() {
	keep := e.call.Limits.OutputKB << 10
	flood := func() { e.flooded.Store(true); e.slot.kill() }
	end := func() { e.streams <- struct{}{} }
	go func() { e.stdout.capture(e.slot.stdout, keep, flood); end() }()
	go func() { e.stderr.capture(e.slot.stderr, keep, flood); end() }()
	go func() { e.status, _ = io.ReadAll(e.slot.status); end() }()
	seed := binary.LittleEndian.AppendUint64(nil, e.call.Seed)
	deliver(e.slot.req, string(seed)+e.call.Code)
	deliver(e.slot.stdin, e.call.Stdin)
}

// watch returns when the call has ended or has been killed.
func (e *execution) watch(ctx context.Context) {
	tick := time.NewTimer(sampleEvery)
	defer tick.Stop()
	for ended := 0; ended < 3; {
		select {
		case <-e.streams:
			ended++
		case <-ctx.Done():
			e.stop(cancelled, ended)
			return
		case <-tick.C:
			if why := e.look(); why != ranAlone {
				e.stop(why, ended)
				return
			}
			tick.Reset(sampleEvery)
		}
	}
	e.finished = true
}

// look samples the call and says whether to kill it, and why.
func (e *execution) look() ending {
	s := e.meter.read()
	switch e.clock.observe(time.Since(e.began), s.cpu, s.wantsCPU) {
	case expired:
		return timeLimit
	case starved:
		return starvation
	}
	g := e.slot.seat.group
	if g != nil && g.oomKills() > 0 || g == nil && s.memoryKB > int64(e.call.Limits.MemoryMB)<<10 {
		return memoryLimit
	}
	return ranAlone
}

// stop kills the call and waits for its streams to end.
func (e *execution) stop(why ending, ended int) {
	e.kill = why
	e.slot.kill()
	limit := time.NewTimer(teardownDeadline)
	defer limit.Stop()
	for ; ended < 3; ended++ {
		select {
		case <-e.streams:
		case <-limit.C:
			return
		}
	}
	e.finished = true
}

// settle reports whether nothing of the call is left. With a status record that is known; without one the namespace has to
// be seen to end.
func (e *execution) settle() bool {
	if !e.finished {
		return false
	}
	if _, ok, _ := parseRecord(e.status); ok {
		return true
	}
	return e.slot.awaitGone(teardownDeadline)
}
