package engine

import "sync/atomic"

// message is one thing asked of the scheduler. Exactly one field is set; messages are served in the order posted.
type message struct {
	call    *call
	cancel  *call
	release *string
	swap    *swap
}

// call is one Generate and its progress. The scheduler alone touches it after it is posted.
type call struct {
	req    Request
	gen    Generation
	seq    *sequence // nil until the call is served and after it ends
	result chan outcome
}

type outcome struct {
	gen Generation
	err error
}

// swap is one pending replacement of the weights, settled once: by the scheduler that carries it out or by the caller who gives up.
type swap struct {
	next    func(old runner) runner
	version string
	settled atomic.Bool
	done    chan error
}

func (w *swap) settle() bool { return w.settled.CompareAndSwap(false, true) }

func (w *swap) refuse(err error) {
	if w.settle() {
		w.done <- err
	}
}

func (c *call) fail(err error) {
	c.seq = nil
	c.result <- outcome{err: err}
}
