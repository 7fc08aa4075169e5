package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/sandbox"
)

// Pools starts a sandbox pool for each way in which recipes want calls to be isolated, and keeps it.
type Pools struct {
	Log        *slog.Logger
	MaxRunning int // calls running at once; 0 is the pool's own default

	mu   sync.Mutex
	held map[string]*sandbox.Pool
}

// startDeadline bounds the start of a pool: zygotes import their modules and every layer is tried.
const startDeadline = 2 * time.Minute

// Get returns the pool of a sandbox section. It fails closed: without the required layers there is no pool.
func (p *Pools) Get(ctx context.Context, s recipe.Sandbox) (agent.Runner, error) {
	key := fmt.Sprintf("%+v", s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if pool := p.held[key]; pool != nil {
		return pool, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline, fmt.Errorf("sandbox pool not up after %v", startDeadline))
	defer cancel()
	pool, err := sandbox.Start(ctx, p.options(s))
	if err != nil {
		return nil, err
	}
	if p.held == nil {
		p.held = map[string]*sandbox.Pool{}
	}
	p.held[key] = pool
	return pool, nil
}

func (p *Pools) options(s recipe.Sandbox) sandbox.Options {
	seconds := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	return sandbox.Options{
		Tier: sandbox.Tier(s.Isolation), Preload: s.Preload, Log: p.Log, MaxRunning: p.MaxRunning,
		Limits: sandbox.Limits{CPU: seconds(s.CPUSecs), Wall: seconds(s.WallSecs), MemoryMB: s.MemoryMB},
	}
}

// Close ends every pool.
func (p *Pools) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.held {
		pool.Close()
	}
	p.held = nil
}
