package engine

import (
	"sync"
	"sync/atomic"

	"github.com/restar-rl/restar/workers/model"
)

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

	hook sync.Mutex // held while OnToken runs
	left bool       // the caller is gone: OnToken is not called any more
}

// tell reports a drawn id to the caller.
func (c *call) tell(d model.Draw) {
	if c.req.OnToken == nil {
		return
	}
	c.hook.Lock()
	defer c.hook.Unlock()
	if !c.left {
		c.req.OnToken(Token{ID: d.ID, LogProb: d.LogP, Entropy: d.Entropy, TopLogProbs: d.Top[:min(len(d.Top), c.req.TopLogProbs)]})
	}
}

// leave waits for an OnToken under way and lets no other begin.
func (c *call) leave() {
	c.hook.Lock()
	defer c.hook.Unlock()
	c.left = true
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
