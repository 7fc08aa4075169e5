package collective

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// DefaultPatience is how long an operation waits for a silent peer. Ranks have nearly equal work, and the longest part of a step that
// one does alone is far shorter.
const DefaultPatience = 5 * time.Minute

// redial is the pause between attempts to reach a peer that does not listen yet.
const redial = 20 * time.Millisecond

// Options describe a mesh. All ranks are given the same ones, apart from Rank.
type Options struct {
	Rank int
	// Addresses of all ranks, by rank: "unix:/path" or "tcp:host:port". Their number is the size of the group.
	Addresses []string
	// Name keeps groups apart that happen to meet at an address: run, stage and epoch.
	Name string
	// Patience bounds the wait for a silent peer within an operation; 0 is DefaultPatience.
	Patience time.Duration
	// Assembly bounds the wait for all ranks to come; 0 is Patience.
	Assembly time.Duration
}

func (o Options) validate() error {
	n := len(o.Addresses)
	if n < 1 || n&(n-1) != 0 {
		return fmt.Errorf("collective: %d ranks, want a power of two", n)
	}
	if o.Rank < 0 || o.Rank >= n {
		return fmt.Errorf("collective: rank is %d, want 0 to %d", o.Rank, n-1)
	}
	for r, a := range o.Addresses {
		if network, _, ok := strings.Cut(a, ":"); !ok || (network != "unix" && network != "tcp") {
			return fmt.Errorf("collective: address of rank %d is %q, want unix:/path or tcp:host:port", r, a)
		}
	}
	return nil
}

// mesh is a group with a connection between every two ranks.
type mesh struct {
	opt    Options
	peers  []*peer // by rank; nil for this one
	serial uint32  // operations so far
	spare  Shard   // memory of the ranks' parts, kept between operations
}

// Join connects the ranks: each listens at its address, dials those below it and waits for those above. It returns when all are
// connected, or when ctx or the assembly's time ends, with an error that names who is missing.
func Join(ctx context.Context, o Options) (Group, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if len(o.Addresses) == 1 {
		return Alone{}, nil
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Assembly == 0 {
		o.Assembly = o.Patience
	}
	ctx, stop := context.WithTimeout(ctx, o.Assembly)
	defer stop()
	m := &mesh{opt: o, peers: make([]*peer, len(o.Addresses))}
	if err := m.connect(ctx); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

func (m *mesh) connect(ctx context.Context) error {
	network, address, _ := strings.Cut(m.opt.Addresses[m.opt.Rank], ":")
	l, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return fmt.Errorf("collective: rank %d cannot listen: %w", m.opt.Rank, err)
	}
	defer func() { _ = l.Close() }() // the connections outlive it
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for r := range m.opt.Rank {
		if err := m.dial(ctx, r); err != nil {
			return err
		}
	}
	for range m.Size() - 1 - m.opt.Rank {
		if err := m.accept(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (m *mesh) dial(ctx context.Context, rank int) error {
	network, address, _ := strings.Cut(m.opt.Addresses[rank], ":")
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			p := &peer{rank: rank, conn: c}
			if err = p.greet(ctx, m.opt, m.opt.Rank); err == nil {
				m.peers[rank] = p
				return nil
			}
			_ = c.Close()
			if errors.Is(err, errStranger) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("collective: rank %d gave up waiting for rank %d at %s: %w (%w)", m.opt.Rank, rank, m.opt.Addresses[rank], err, context.Cause(ctx))
		case <-time.After(redial):
		}
	}
}

func (m *mesh) accept(ctx context.Context, l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return fmt.Errorf("collective: rank %d gave up waiting for ranks %v: %w", m.opt.Rank, m.missing(), errors.Join(context.Cause(ctx), err))
	}
	p := &peer{conn: c}
	rank, err := p.welcome(ctx, m.opt)
	if err != nil {
		_ = c.Close()
		return err
	}
	if rank <= m.opt.Rank || rank >= m.Size() || m.peers[rank] != nil {
		_ = c.Close()
		return fmt.Errorf("%w: it says that it is rank %d, and rank %d waits for %v", errStranger, rank, m.opt.Rank, m.missing())
	}
	p.rank = rank
	m.peers[rank] = p
	return nil
}

func (m *mesh) missing() (ranks []int) {
	for r, p := range m.peers {
		if r > m.opt.Rank && p == nil {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (m *mesh) Rank() int { return m.opt.Rank }

func (m *mesh) Size() int { return len(m.peers) }

func (m *mesh) Close() error {
	var errs []error
	for _, p := range m.peers {
		if p != nil {
			errs = append(errs, p.conn.Close())
		}
	}
	return errors.Join(errs...)
}

// each runs one operation with every peer at once and returns the first error by rank. An error closes all connections, so
// that no peer waits for what will not come.
func (m *mesh) each(ctx context.Context, f func(p *peer) error) error {
	m.serial++
	errs := make([]error, m.Size())
	var wg sync.WaitGroup
	for r, p := range m.peers {
		if p != nil {
			wg.Go(func() {
				stop := p.watch(ctx)
				defer stop()
				if errs[r] = f(p); errs[r] != nil {
					_ = m.Close()
				}
			})
		}
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil && (ctx.Err() != nil || !errors.Is(err, net.ErrClosed)) {
			return fmt.Errorf("collective: rank %d with rank %d: %w", m.opt.Rank, r, errors.Join(err, context.Cause(ctx)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("collective: rank %d: %w", m.opt.Rank, err)
	}
	return nil
}

func (m *mesh) ReduceScatter(ctx context.Context, parts []Shard) error {
	if err := m.check(parts); err != nil {
		return err
	}
	own := parts[m.opt.Rank]
	received := m.parts(own.Len())
	err := m.each(ctx, func(p *peer) error {
		return p.swap(m.serial, m.opt.Patience, parts[p.rank], Shard{received[p.rank]})
	})
	if err != nil {
		return err
	}
	mine := received[m.opt.Rank][:0]
	for _, v := range own {
		mine = append(mine, v...)
	}
	sum := Tree(received, func(left, right []float32) []float32 {
		for i, x := range right {
			left[i] += x
		}
		return left
	})
	for _, v := range own {
		sum = sum[copy(v, sum):]
	}
	return nil
}

// parts returns memory for n elements of every rank.
func (m *mesh) parts(n int) Shard {
	if len(m.spare) == 0 || len(m.spare[0]) < n {
		m.spare = make(Shard, m.Size())
		for r := range m.spare {
			m.spare[r] = make([]float32, n)
		}
	}
	out := make(Shard, m.Size())
	for r := range out {
		out[r] = m.spare[r][:n]
	}
	return out
}

func (m *mesh) AllGather(ctx context.Context, shards []Shard) error {
	if err := m.check(shards); err != nil {
		return err
	}
	return m.each(ctx, func(p *peer) error {
		return p.swap(m.serial, m.opt.Patience, shards[m.opt.Rank], shards[p.rank])
	})
}

func (m *mesh) Broadcast(ctx context.Context, root int, s Shard) error {
	return m.star(ctx, root, func(int) Shard { return s }, true)
}

func (m *mesh) Scatter(ctx context.Context, root int, shards []Shard) error {
	if err := m.check(shards); err != nil {
		return err
	}
	return m.star(ctx, root, func(r int) Shard { return shards[r] }, true)
}

func (m *mesh) Gather(ctx context.Context, root int, shards []Shard) error {
	if err := m.check(shards); err != nil {
		return err
	}
	return m.star(ctx, root, func(r int) Shard { return shards[r] }, false)
}

// star moves the shard of every other rank r from root to r, or from r to root.
func (m *mesh) star(ctx context.Context, root int, shard func(r int) Shard, outward bool) error {
	return m.each(ctx, func(p *peer) error {
		r := p.rank
		switch {
		case m.opt.Rank != root && p.rank != root:
			return nil
		case m.opt.Rank != root:
			r = m.opt.Rank
		}
		if outward == (m.opt.Rank == root) {
			return p.sendFloats(p.writer(m.opt.Patience), m.serial, shard(r))
		}
		return p.receiveFloats(p.reader(m.opt.Patience), m.serial, shard(r))
	})
}

func (m *mesh) Exchange(ctx context.Context, message []byte) ([][]byte, error) {
	out := make([][]byte, m.Size())
	out[m.opt.Rank] = message
	err := m.each(ctx, func(p *peer) (err error) {
		out[p.rank], err = p.swapMessages(m.serial, m.opt.Patience, message)
		return err
	})
	return out, err
}

func (m *mesh) Tell(ctx context.Context, message []byte) error {
	return m.each(ctx, func(p *peer) error { return p.send(p.writer(m.opt.Patience), m.serial, message) })
}

func (m *mesh) Listen(ctx context.Context, root int) (message []byte, err error) {
	err = m.each(ctx, func(p *peer) (err error) {
		if p.rank == root {
			message, err = p.receive(p.reader(0), m.serial)
		}
		return err
	})
	return message, err
}

func (m *mesh) check(shards []Shard) error {
	if len(shards) != m.Size() {
		return fmt.Errorf("collective: %d shards for %d ranks, want one each", len(shards), m.Size())
	}
	return nil
}
