package sandboxnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service"
	"github.com/restar-rl/restar/workers/telemetry"
)

// startTimeout bounds the start of the pool: interpreters import their modules and every layer is tried.
const startTimeout = 2 * time.Minute

// Serve runs a node until ctx ends, then drains it.
func Serve(ctx context.Context, out io.Writer, o Options) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fault.Userf("cannot listen on %s: %w; choose another address with --listen", o.Listen, err)
	}
	defer l.Close()
	log := logger()
	tel, err := telemetry.Start(telemetry.Options{Exporter: o.Telemetry, Out: os.Stdout, Service: "restar-sandbox", Instance: o.Node})
	if err != nil {
		return fault.AsUser(err)
	}
	defer func() { err = errors.Join(err, tel.Close(context.WithoutCancel(ctx))) }()
	limit, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the sandbox pool was not up after %v", startTimeout))
	defer cancel()
	pool, err := sandbox.Start(limit, o.pool(log))
	switch {
	case ctx.Err() != nil:
		return fault.ErrInterrupted
	case err != nil:
		less := ""
		if o.Isolation == string(sandbox.TierA) {
			less = ", --isolation B asks for less"
		}
		return fault.Userf("no sandbox starts here: %w; `restar sandbox doctor` shows every layer%s", err, less)
	}
	defer pool.Close()
	s, err := service.New(o.service(pool, log, tel))
	if err != nil {
		return fault.AsUser(err)
	}
	announce(out, o.JSON, l.Addr(), pool)
	return s.Serve(ctx, l, o.Drain)
}

// announce says where the service listens, once it does.
func announce(out io.Writer, asJSON bool, at net.Addr, pool *sandbox.Pool) {
	st := pool.Status()
	if asJSON {
		_ = json.NewEncoder(out).Encode(map[string]string{"url": "http://" + at.String(), "isolation_tier": string(st.Tier), "reason": st.Reason})
		return
	}
	fmt.Fprintf(out, "sandbox service on http://%s, isolation tier %s\n", at, st.Tier)
	if st.Reason != "" {
		fmt.Fprintf(out, "  not tier A: %s\n", st.Reason)
	}
}
