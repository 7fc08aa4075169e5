package activities

import (
	"context"
	"fmt"
	"sync"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
)

// enginesHeld is how many policies a rollout worker keeps in memory: the one that trains, and one that is being evaluated
// or filtered beside it.
const enginesHeld = 2

// Engines holds one engine a policy version, and drops the least recently used.
type Engines struct {
	Policies *Policies
	Options  engine.Options
	KVBytes  int // memory for the KV cache of one policy; 0 leaves Options.Blocks as it is

	mu   sync.Mutex
	held []*heldEngine // most recently used last
}

type heldEngine struct {
	run     string
	weights Weights
	users   int
	ready   chan struct{}  // closed when engine or err is set
	engine  *engine.Engine // before ready: an idle one of the same run, whose memory is taken over
	err     error
}

// Use returns the engine of a policy. The caller gives it back with done.
func (e *Engines) Use(ctx context.Context, run string, w Weights) (eng agent.Engine, done func(), err error) {
	h, mine := e.claim(run, w)
	if mine {
		h.engine, h.err = e.start(ctx, run, w, h.engine)
		close(h.ready)
	}
	done = func() { e.giveBack(h) }
	select {
	case <-h.ready:
	case <-ctx.Done():
		done()
		return nil, nil, fmt.Errorf("waiting for the engine of %s: %w", w.Version, context.Cause(ctx))
	}
	if h.err != nil {
		done()
		return nil, nil, h.err
	}
	return h.engine, done, nil
}

// start makes the engine of a policy, in an idle one's memory if there is one: a KV cache is hundreds of megabytes, and a new
// policy comes every step.
func (e *Engines) start(ctx context.Context, run string, w Weights, idle *engine.Engine) (*engine.Engine, error) {
	m, err := e.Policies.Load(ctx, run, w)
	if err == nil && idle != nil {
		err = idle.Swap(ctx, m, w.Version)
	}
	if err != nil {
		if idle != nil {
			idle.Close()
		}
		return nil, err
	}
	if idle != nil {
		return idle, nil
	}
	opt := e.Options
	if e.KVBytes > 0 {
		opt.Blocks = max(1, e.KVBytes/m.BlockBytes())
	}
	return engine.New(m, w.Version, opt)
}

// claim finds or adds the slot of a policy. mine tells the one caller that starts its engine.
func (e *Engines) claim(run string, w Weights) (h *heldEngine, mine bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, h := range e.held {
		if h.run == run && h.weights == w && !h.failed() {
			e.held = append(append(e.held[:i:i], e.held[i+1:]...), h)
			h.users++
			return h, false
		}
	}
	h = &heldEngine{run: run, weights: w, users: 1, ready: make(chan struct{}), engine: e.takeIdle(run)}
	e.held = append(e.held, h)
	return h, true
}

// takeIdle removes the least recently used idle engine of a run, if there are as many engines as may be held.
func (e *Engines) takeIdle(run string) *engine.Engine {
	if len(e.held) < enginesHeld {
		return nil
	}
	for i, h := range e.held {
		if h.users == 0 && h.run == run && h.engine != nil && !h.failed() {
			e.held = append(e.held[:i:i], e.held[i+1:]...)
			return h.engine
		}
	}
	return nil
}

func (h *heldEngine) failed() bool {
	select {
	case <-h.ready:
		return h.err != nil
	default:
		return false
	}
}

// giveBack ends one use, and closes engines that are idle and too many.
func (e *Engines) giveBack(h *heldEngine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h.users--
	keep := e.held[:0]
	extra := len(e.held) - enginesHeld
	for _, x := range e.held {
		if x.users == 0 && (extra > 0 || x.failed()) {
			extra--
			if x.engine != nil {
				x.engine.Close()
			}
			continue
		}
		keep = append(keep, x)
	}
	e.held = keep
}

// Close ends every engine.
func (e *Engines) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.held {
		if h.engine != nil {
			h.engine.Close()
		}
	}
	e.held = nil
}
