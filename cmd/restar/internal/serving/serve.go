package serving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/display"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/serve"
	"github.com/spf13/pflag"
)

// ServeOptions are those of `restar serve`.
type ServeOptions struct {
	EngineOptions
	Addr    string
	Name    string
	Waiting int
	Timeout time.Duration
	Drain   time.Duration
	JSON    bool
}

// Register adds the flags.
func (o *ServeOptions) Register(fs *pflag.FlagSet) {
	o.EngineOptions.Register(fs)
	fs.StringVar(&o.Addr, "addr", "127.0.0.1:8080", "address to listen on; there is no authentication, so keep it to those you trust")
	fs.StringVar(&o.Name, "name", "", "what clients call the model (default: the folder's name)")
	fs.IntVar(&o.Waiting, "queue", 256, "answers that may wait for their first token; more are told to come back (429)")
	fs.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "longest time of a request")
	fs.DurationVar(&o.Drain, "drain", 30*time.Second, "what requests under way are given to end in, once asked to stop")
	fs.BoolVar(&o.JSON, "json", false, "print one JSON object a line")
}

func (o ServeOptions) check() error {
	switch {
	case o.Waiting < 1:
		return fault.Userf("--queue is %d, want at least 1", o.Waiting)
	case o.Timeout <= 0:
		return fault.Userf("--timeout is %v, want a positive time", o.Timeout)
	case o.Drain < 0:
		return fault.Userf("--drain is %v, want 0 or more", o.Drain)
	}
	return nil
}

// Serve serves a model until ctx ends, then lets what is under way end.
func Serve(ctx context.Context, out io.Writer, dir string, o ServeOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return fault.Userf("--addr %s: %w; choose a free address of this machine", o.Addr, err)
	}
	defer func() {
		if e := l.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}()
	mode := display.Lines
	if o.JSON {
		mode = display.JSON
	}
	d := display.New(out, mode, time.Now)
	d.Event("reading", "reading "+dir, map[string]any{"folder": dir})
	f, err := open(ctx, dir, o.EngineOptions)
	if err != nil {
		return err
	}
	if o.Name == "" {
		o.Name = f.name
	}
	e, err := f.start()
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := serve.New(e, f.tokenizer, serve.Options{
		Model: o.Name, Template: f.template(false), Stop: f.stops, Positions: f.model.Config.MaxPosition, MaxWaiting: o.Waiting, Timeout: o.Timeout,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return fault.AsUser(err)
	}
	url := "http://" + l.Addr().String() + "/v1"
	d.Event("serving", fmt.Sprintf("serving %s at %s: %d tokens of context, %d KV blocks, %s; Ctrl-C ends it", o.Name, url, f.room(), f.blocks, f.model.Precision()),
		map[string]any{"model": o.Name, "url": url, "context": f.room(), "kv_blocks": f.blocks, "precision": f.model.Precision()})
	if err := s.Serve(ctx, l, o.Drain); err != nil {
		return err
	}
	d.Event("ended", "ended", map[string]any{})
	return nil
}
