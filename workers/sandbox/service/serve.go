package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve answers on the listener until ctx ends, then drains: new calls are refused at once, running ones end by themselves
// within patience and are killed after it, answers are written out, and Serve returns.
func (s *Service) Serve(ctx context.Context, l net.Listener, patience time.Duration) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), patience, fmt.Errorf("running calls did not end within %v", patience))
	defer cancel()
	err := s.Drain(limit)
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancelLast()
	if stop := server.Shutdown(last); stop != nil {
		err = errors.Join(err, stop, server.Close())
	}
	return errors.Join(err, closed(<-ended))
}

// closed drops the error by which a server says that it was shut down.
func closed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
