package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second // for a client to send its headers
	idleTimeout   = 2 * time.Minute  // between requests of a connection
	headerBytes   = 64 << 10
)

// Serve answers on l until ctx ends. Then it takes nothing new, gives what is under way the time drain to end, and ends the
// rest. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	rest, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	server := &http.Server{
		Handler: s.Handler(), BaseContext: func(net.Listener) context.Context { return rest },
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(s.opt.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	patience, cancel := context.WithTimeout(rest, drain)
	defer cancel()
	err := server.Shutdown(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		cut(errDraining)
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("serve: shutdown: %w", err)
	}
	return nil
}
