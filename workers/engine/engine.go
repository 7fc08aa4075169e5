// Package engine samples from a model for thousands of callers at once: continuous batching over a paged KV cache.
//
// Invariants:
//   - A generation is a pure function of (weights, IDs, Temperature, TopK, TopP, Seed, Address, Stop, MaxNew). Company, chunking, caching, preemption
//     and eviction change when a token is computed, never its bits, because the model's bits do not depend on them either.
//   - One goroutine owns all state and steps the model. Callers hand it work and wait; every wait ends with their context.
//   - A full block of KV is immutable and shared by content: its key is a hash of the weight version and of every id up to its end.
//     A block that is not full has one owner; others copy it.
//   - No generation spans two weight versions: Swap waits for those it finds and holds back those that follow.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/restar-rl/restar/workers/model"
)

// Errors that callers tell apart. Each is wrapped with the values found and expected.
var (
	ErrRequest   = errors.New("engine: request refused")        // the caller's request cannot be served as it stands
	ErrBusy      = errors.New("engine: session in use")         // a session generates one turn at a time
	ErrClosed    = errors.New("engine: closed")                 // Close was called
	ErrNonFinite = errors.New("engine: log-prob is not finite") // the weights are broken; no token was sampled from them
)

// Finish says why a generation ended.
type Finish string

// The two ends of a generation that is not an error.
const (
	FinishStop   Finish = "stop"   // the last id is one of Stop
	FinishLength Finish = "length" // MaxNew ids were generated
)

// Generation is a finished turn. IDs, LogProbs and Entropy have one entry per generated id.
type Generation struct {
	IDs         []int32
	LogProbs    []float32        // natural log, of the distribution sampled from (see kernels.Choice); greedy: of the softmax of the logits
	Entropy     []float32        // nats, of the same distribution
	TopLogProbs [][]model.Likely // for each id the likeliest of the same distribution, the likeliest first; nil unless asked for
	Finish      Finish
	Version     string // of the weights that every id was sampled with
}

// Options size an engine. Zero fields take the defaults.
type Options struct {
	Blocks           int // KV blocks of model.BlockTokens tokens; default 512
	MaxRows          int // sequences stepped together; default 256, where the row count no longer raises GEMM throughput
	MaxPrefillTokens int // prompt tokens added to one step; default 512: long prompts are computed in chunks between decode steps
}

func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Blocks, 512)
	def(&o.MaxRows, 256)
	def(&o.MaxPrefillTokens, 512)
	return o
}

func (o Options) validate() error {
	if o.Blocks < 1 || o.MaxRows < 1 || o.MaxPrefillTokens < 1 {
		return fmt.Errorf("engine: options %+v: Blocks, MaxRows and MaxPrefillTokens must be positive", o)
	}
	return nil
}

// Stats is a snapshot between two steps. Token counts are totals since New.
type Stats struct {
	GeneratedTokens int64
	PrefillTokens   int64 // prompt tokens computed, those computed again after eviction included
	CachedTokens    int64 // prompt tokens found in the KV cache instead
	Steps           int64
	Preemptions     int64 // running sequences that gave up their blocks
	Evictions       int64 // idle or waiting sequences that gave up their blocks
	Running         int
	Waiting         int
	Sessions        int // sessions that hold KV between turns, busy ones included
	FreeBlocks      int // unused, or kept only in case their content is asked for again
	IdleBlocks      int // held by sequences that are not running: reclaimable at the price of computing them again
	TotalBlocks     int
	Version         string
}

// Engine is safe for use by many goroutines.
type Engine struct {
	opt  Options
	wake chan struct{} // capacity 1: the inbox or the closing flag changed
	stop context.CancelFunc
	done chan struct{} // closed when the scheduler has ended

	mu     sync.Mutex
	inbox  []message
	closed bool
	stats  Stats
}

// New starts an engine on a model. The caller must not change the weights while a generation runs; see Swap.
func New(m *model.Model, version string, opt Options) (*Engine, error) {
	opt = opt.withDefaults()
	if err := opt.validate(); err != nil {
		return nil, err
	}
	return start(newModelRunner(m, opt.Blocks), version, opt), nil
}

func start(r runner, version string, opt Options) *Engine {
	ctx, stop := context.WithCancel(context.Background())
	e := &Engine{
		opt: opt, wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{}),
		stats: Stats{FreeBlocks: opt.Blocks, TotalBlocks: opt.Blocks, Version: version},
	}
	go newScheduler(e, r, version).loop(ctx)
	return e
}

// Generate samples one turn and returns when it ends, or when ctx does. A generation ended by ctx leaves its session's KV in place.
func (e *Engine) Generate(ctx context.Context, r Request) (Generation, error) {
	c := &call{req: r, result: make(chan outcome, 1)}
	if err := e.post(message{call: c}); err != nil {
		return Generation{}, err
	}
	select {
	case o := <-c.result:
		return o.gen, o.err
	case <-ctx.Done():
		c.leave()
		_ = e.post(message{cancel: c}) // a closed engine has no use for it
		return Generation{}, fmt.Errorf("engine: generation of session %q (%d context ids) given up: %w", r.Session, len(r.IDs), context.Cause(ctx))
	}
}

// Release drops a session's KV. A turn of the session that is still running continues, and keeps nothing.
func (e *Engine) Release(session string) {
	_ = e.post(message{release: &session}) // a closed engine holds nothing
}

// Swap replaces the weights. It waits until the generations posted before it have ended, holds back later ones meanwhile, then drops all
// KV. m may be the model in use, changed in place by a trainer that ran while nothing generated. If ctx ends first, nothing is replaced.
func (e *Engine) Swap(ctx context.Context, m *model.Model, version string) error {
	return e.swap(ctx, version, func(old runner) runner { return old.(*modelRunner).with(m, e.opt.Blocks) })
}

func (e *Engine) swap(ctx context.Context, version string, next func(runner) runner) error {
	w := &swap{next: next, version: version, done: make(chan error, 1)}
	if err := e.post(message{swap: w}); err != nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	if w.settle() { // it will not happen any more
		e.poke()
		s := e.Stats()
		return fmt.Errorf("engine: swap to version %q given up while waiting for %d running and %d waiting generations of version %q: %w",
			version, s.Running, s.Waiting, s.Version, context.Cause(ctx))
	}
	return <-w.done // it was under way, which takes no waiting
}

// Stats returns the latest snapshot.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// Close ends the engine after the step under way. Generations not finished return ErrClosed.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	<-e.done
}

func (e *Engine) post(m message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.inbox = append(e.inbox, m)
	e.poke()
	return nil
}

func (e *Engine) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
