package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/store"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// connectTimeout bounds the first answer of a server and of a store: both answer within a second or are not there.
const connectTimeout = 15 * time.Second

// Session is a connection to one stack.
type Session struct {
	Client    client.Client
	Store     store.Store
	Namespace string
	UI        string // address of the Temporal Web UI, if known
	Dir       string
	failed    chan error // why the stack or a worker cannot be kept up
	closers   []func() error
}

// connect dials the server and checks the bucket.
func connect(ctx context.Context, o Options) (*Session, error) {
	return connectWith(ctx, o, client.Options{Identity: "restar command line", Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
}

func connectWith(ctx context.Context, o Options, opts client.Options) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	opts.HostPort, opts.Namespace = o.Temporal, o.Namespace
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, fault.Userf("no Temporal server answers at %s (%v); check the address and that the server is up", o.Temporal, err)
	}
	s, err := store.NewS3(o.s3())
	if err == nil {
		err = s.Check(ctx)
	}
	if err != nil {
		c.Close()
		return nil, fault.Userf("the object store cannot be used: %v; check --s3, --bucket and the AWS_* credentials", err)
	}
	return &Session{Client: c, Store: s, Namespace: o.Namespace, Dir: o.Dir, closers: []func() error{func() error { c.Close(); return nil }}}, nil
}

// Close ends the session: first the connection, then whatever the session started. It says what did not end in order.
func (s *Session) Close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c())
	}
	s.closers = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}
