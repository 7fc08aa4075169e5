package sandbox

import (
	"context"
	"encoding/binary"
	"io"
	"os"
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
	memoryLimit
	cancelled
	forgery // a cell wrote to its session's channel
	unruly  // a cell's processes did not stop
)

// execution is one call on one slot, or one cell on a session's.
type execution struct {
	slot                  *slot
	call                  Call // limits resolved
	began                 time.Time
	stdin, stdout, stderr *os.File
	outText, errText      output
	status                []byte
	clock                 clock
	meter                 *meter
	flooded               atomic.Bool
	streams               chan struct{} // one value for each stream that has ended
	kill                  ending
	finished              bool // every stream ended
}

func newExecution(sl *slot, c Call) *execution {
	return &execution{slot: sl, call: c, began: time.Now(), clock: clock{limits: c.Limits}, streams: make(chan struct{}, 3)}
}

// execute runs c on the slot and uses it up. The caller gets the seat back only if gone is true.
func execute(ctx context.Context, sl *slot, c Call) (res Result, gone bool, err error) {
	e := newExecution(sl, c)
	e.meter, e.stdin, e.stdout, e.stderr = newMeter(sl), sl.stdin, sl.stdout, sl.stderr
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
	e.capture()
	go func() { e.status, _ = io.ReadAll(e.slot.status); e.streams <- struct{}{} }()
	deliver(e.slot.req, string(header(e.call))+e.call.Code)
	deliver(e.stdin, e.call.Stdin)
}

// header is class Header of zygote.py, with an empty token.
func header(c Call) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, tokenBytes, tokenBytes+16), c.Seed)
	b = binary.LittleEndian.AppendUint32(b, uint32(backstop(c.Limits.CPU)))
	return binary.LittleEndian.AppendUint32(b, uint32(len(c.Code)))
}

// capture reads both outputs beside the caller.
func (e *execution) capture() {
	keep := e.call.Limits.OutputKB << 10
	flood := func() { e.flooded.Store(true); e.slot.kill() }
	go func() { e.outText.capture(e.stdout, keep, flood); e.streams <- struct{}{} }()
	go func() { e.errText.capture(e.stderr, keep, flood); e.streams <- struct{}{} }()
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
			e.stop(cancelled, 3-ended)
			return
		case <-tick.C:
			if why := e.look(); why != ranAlone {
				e.stop(why, 3-ended)
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

// stop kills the call and waits for so many streams to end.
func (e *execution) stop(why ending, open int) {
	e.kill = why
	e.slot.kill()
	limit := time.NewTimer(teardownDeadline)
	defer limit.Stop()
	for ; open > 0; open-- {
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
