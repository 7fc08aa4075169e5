package sandbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// checks keeps the newest preflight. The zero value is ready.
type checks struct {
	mu   sync.Mutex
	last Preflight
}

func (c *checks) newest() Preflight {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *checks) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = Preflight{At: time.Now(), Err: err}
}

// admitted tries every layer inside z. An insecure pool takes it as it is.
func (p *Pool) admitted(ctx context.Context, z *zygote) error {
	if p.opt.Insecure {
		return nil
	}
	report, err := p.preflight(ctx, z)
	if err == nil {
		err = report.refusal()
	}
	if ctx.Err() == nil {
		p.check.note(err)
	}
	return err
}

// recheck runs the canaries again in every zygote from time to time. One in which a layer no longer holds is ended: its
// keeper starts another, which has to pass them before it gets a call.
func (p *Pool) recheck() {
	tick := time.NewTicker(p.opt.Recheck)
	defer tick.Stop()
	for {
		select {
		case <-p.life.Done():
			return
		case <-tick.C:
			p.recheckAll()
		}
	}
}

func (p *Pool) recheckAll() {
	for _, s := range p.shelves {
		for _, z := range s.living() {
			if err := p.admitted(p.life, z); errors.Is(err, ErrLayer) {
				p.opt.Log.Error("sandbox: a zygote is ended", "profile", s.profile.name, "error", err)
				_ = z.cmd.Process.Kill()
			}
		}
	}
}
