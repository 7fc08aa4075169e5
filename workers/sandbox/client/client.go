package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

// Client runs calls on the nodes. It is safe for any number of concurrent callers.
type Client struct {
	opt     Options
	http    *http.Client
	nodes   *balancer
	budget  budget
	name    string // makes keys unique among clients
	sent    atomic.Int64
	waiting atomic.Int64 // calls in Run
}

var _ sandbox.Runner = (*Client)(nil)

// New makes a client. It opens no connection: see Await.
func New(o Options) (*Client, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	dial := &net.Dialer{Timeout: 5 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}} // a vanished host is noticed within 25 s
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial.DialContext, TLSHandshakeTimeout: 5 * time.Second,
		MaxConnsPerHost: o.InFlight, MaxIdleConnsPerHost: o.InFlight,
		IdleConnTimeout: 90 * time.Second, // before the service closes them
	}
	return &Client{opt: o, http: &http.Client{Transport: transport}, nodes: newBalancer(o), budget: newBudget(), name: uuid.NewString()}, nil
}

// Close closes idle connections. Calls in Run end by their own contexts.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Await returns when a node says that it is ready, or ctx ends.
func (c *Client) Await(ctx context.Context) error {
	const pause = 200 * time.Millisecond
	for {
		var errs []error
		for _, n := range c.nodes.nodes {
			err := c.probe(ctx, n.base)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: no sandbox node is ready: %w", sandbox.ErrInfrastructure, errors.Join(errs...))
		case <-time.After(pause):
		}
	}
}

func (c *Client) probe(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return err
	}
	r, err := c.http.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode >= 300 {
		return refusal(&node{base: base}, r).err
	}
	return nil
}

// Run implements [sandbox.Runner].
func (c *Client) Run(ctx context.Context, call sandbox.Call) (sandbox.Result, error) {
	if n := c.waiting.Add(1); n > int64(c.opt.MaxOutstanding) {
		c.waiting.Add(-1)
		return sandbox.Result{}, fmt.Errorf("%w: %d calls are outstanding, the limit is %d", sandbox.ErrInfrastructure, n-1, c.opt.MaxOutstanding)
	}
	defer c.waiting.Add(-1)
	t := &try{Client: c, call: call, key: c.key(call.ID), began: time.Now()}
	// Tens of thousands of goroutines wait here: their stacks stay small as long as nothing deeper has run on them.
	var err error
	if t.next, err = c.nodes.acquire(ctx, hashOf(t.key), nil); err != nil {
		return sandbox.Result{}, err
	}
	return t.run(ctx)
}

// key is a call's idempotency key: the same for every send of one Run, and of no other.
func (c *Client) key(id string) string {
	const most = 128 // of the id: the rest of the key has 60 bytes at most, the service takes 256
	return fmt.Sprintf("%s/%d/%s", c.name, c.sent.Add(1), id[:min(len(id), most)])
}

// rolloutOf is the part of a call's id that names its rollout: ids are ROLLOUT/turn N/call N.
func rolloutOf(id string) string {
	rollout, _, _ := strings.Cut(id, "/turn ")
	return rollout[:min(len(rollout), 256)]
}

func (c *Client) request(ctx context.Context, call sandbox.Call, key string) ([]byte, error) {
	q := wire.Request{CallID: key, RolloutID: rolloutOf(call.ID), Code: call.Code, Stdin: call.Stdin, Seed: call.Seed,
		Isolation: string(c.opt.Tier), Limits: limitsOf(call.Limits.WithDefaults(c.opt.Limits))}
	if at, ok := ctx.Deadline(); ok {
		q.DeadlineMs = max(time.Until(at).Milliseconds(), 1)
	}
	return json.Marshal(q)
}

func limitsOf(l sandbox.Limits) wire.Limits {
	return wire.Limits{CPUMs: l.CPU.Milliseconds(), WallMs: l.Wall.Milliseconds(), MemoryMB: l.MemoryMB, Pids: l.Pids, Cores: l.Cores, TmpKB: l.TmpKB, OutputKB: l.OutputKB}
}

// resultOf reads a completed result.
func resultOf(r wire.Result) sandbox.Result {
	d := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	return sandbox.Result{
		Status: sandbox.Status(r.Status), ExitCode: r.ExitCode, Signal: r.Signal, Stdout: r.Stdout, Stderr: r.Stderr,
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated, StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes,
		CPU: d(r.Timing.CPUMs), InitCPU: d(r.Timing.InitMs), Wall: d(r.Timing.RunMs), Queue: d(r.Timing.QueueMs),
		PeakKB: r.PeakKB, Faults: r.PageFaults, Tier: sandbox.Tier(r.Tier), Profile: r.Profile, SessionEnded: r.SessionEnded,
	}
}

// budget lets retries be a tenth of completed calls, and a few more at the start.
type budget struct {
	mu   sync.Mutex
	left float64
}

const (
	firstRetries = 32
	mostRetries  = 256 // saved up: a node that dies takes at most its calls on the wire along
	retryShare   = 0.1
)

func newBudget() budget { return budget{left: firstRetries} }

func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+retryShare, mostRetries)
}

func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
