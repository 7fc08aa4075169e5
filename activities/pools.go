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
	"github.com/restar-rl/restar/workers/sandbox/client"
	"github.com/restar-rl/restar/workers/verify"
)

// Pools starts a sandbox pool for each way in which recipes want calls to be isolated, and keeps it.
type Pools struct {
	Log        *slog.Logger
	MaxRunning int // calls running at once; 0 is the pool's own default
	// Endpoints are base URLs of sandbox services that run the calls of every recipe, in place of what it says.
	Endpoints []string

	mu        sync.Mutex
	held      map[string]runner
	verifiers map[sandbox.Tier]*verifier
}

// verifier is a verifier with the pool of its symbolic checks.
type verifier struct {
	*verify.Verifier
	pool *sandbox.Pool
}

// runner is a pool of this process, or a client of sandbox services.
type runner interface {
	agent.Runner
	Close()
}

// startDeadline bounds the start of a pool: zygotes import their modules and every layer is tried.
const startDeadline = 2 * time.Minute

// Get returns the pool of a sandbox section, or a client of the services it names. It fails closed: without the required
// layers there is no pool, and nodes that give less refuse the calls.
func (p *Pools) Get(ctx context.Context, s recipe.Sandbox) (agent.Runner, error) {
	if len(p.Endpoints) > 0 {
		s.Endpoints = p.Endpoints
	}
	key := fmt.Sprintf("%+v", s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.held[key]; r != nil {
		return r, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline, fmt.Errorf("sandbox pool not up after %v", startDeadline))
	defer cancel()
	r, err := p.start(ctx, s)
	if err != nil {
		return nil, err
	}
	if p.held == nil {
		p.held = map[string]runner{}
	}
	p.held[key] = r
	return r, nil
}

func (p *Pools) start(ctx context.Context, s recipe.Sandbox) (runner, error) {
	o := p.options(s)
	if len(s.Endpoints) == 0 {
		return sandbox.Start(ctx, o)
	}
	c, err := client.New(client.Options{Endpoints: s.Endpoints, Tier: o.Tier, Limits: o.Limits, Log: p.Log})
	if err != nil {
		return nil, err
	}
	if err := c.Await(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Verifier returns the verifier whose symbolic checks run at a sandbox section's level of isolation, in a pool of this process:
// the references stay where they are.
func (p *Pools) Verifier(ctx context.Context, s recipe.Sandbox) (*verify.Verifier, error) {
	tier := sandbox.Tier(s.Isolation)
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.verifiers[tier]; v != nil {
		return v.Verifier, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline, fmt.Errorf("the verifier's sandbox not up after %v", startDeadline))
	defer cancel()
	o := verify.SandboxOptions(tier)
	o.Log = p.Log
	pool, err := sandbox.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	if p.verifiers == nil {
		p.verifiers = map[sandbox.Tier]*verifier{}
	}
	v := &verifier{verify.NewVerifier(pool, final), pool}
	p.verifiers[tier] = v
	return v.Verifier, nil
}

func (p *Pools) options(s recipe.Sandbox) sandbox.Options {
	seconds := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	return sandbox.Options{
		Tier: sandbox.Tier(s.Isolation), Preload: s.Preload, Log: p.Log, MaxRunning: p.MaxRunning,
		Limits: sandbox.Limits{CPU: seconds(s.CPUSecs), Wall: seconds(s.WallSecs), MemoryMB: s.MemoryMB}, Texts: sandbox.Texts(s.Texts),
	}
}

// Close ends every pool and client.
func (p *Pools) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.held {
		r.Close()
	}
	for _, v := range p.verifiers {
		v.Verifier.Close()
		v.pool.Close()
	}
	p.held, p.verifiers = nil, nil
}
