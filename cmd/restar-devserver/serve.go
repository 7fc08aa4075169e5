package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// stopTimeout bounds a clean stop (measured 1.6 s); after it the process ends
// anyway, which is as safe as kill -9.
const stopTimeout = 20 * time.Second

// serve runs the whole stack until ctx ends or a part of it fails.
func serve(ctx context.Context, o options) error {
	if err := o.prepare(); err != nil {
		return err
	}
	lock, err := lockFolder(o.dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.Remove(o.ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usagef("stale ready file %s cannot be removed (%v); remove it", o.ready, err)
	}
	err = run(ctx, o)
	os.Remove(o.ready)
	if errors.Is(err, syscall.ENOSPC) {
		return usagef("no space left on the file system of %s (%v); free some and start again", o.dir, err)
	}
	return err
}

func run(ctx context.Context, o options) error {
	file, logger, err := openLog(o.log)
	if err != nil {
		return err
	}
	defer file.Close()
	ports, err := choosePorts(o)
	if err != nil {
		return err
	}
	keys, err := loadKeys(o.dir)
	if err != nil {
		return err
	}
	s := &stack{ports: ports, keys: keys, log: logger, failed: make(chan error, 2)}
	defer s.stop()
	if err := s.start(ctx, o.dir); err != nil {
		return err
	}
	return s.watch(ctx, o.ready)
}

// stack is the running services, stopped in the reverse order of their start.
type stack struct {
	ports  ports
	keys   keyPair
	log    *slog.Logger
	failed chan error // one for each service that can end by itself
	stops  []func()
}

func (s *stack) start(ctx context.Context, dir string) error {
	if err := s.startObjects(dir); err != nil {
		return err
	}
	db := filepath.Join(dir, "temporal", "temporal.db")
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		return usagef("folder %s cannot be made (%v); fix its permissions", filepath.Dir(db), err)
	}
	cfg, err := openDatabase(db)
	if err != nil || ctx.Err() != nil {
		return err
	}
	srv, err := startTemporal(cfg, s.ports, s.log)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, func() { _ = srv.Stop() })
	ui := newUI(s.ports)
	s.stops = append(s.stops, ui.Stop)
	go func() { s.failed <- ended("Temporal Web UI", ui.Start()) }()
	return nil
}

func (s *stack) startObjects(dir string) error {
	be, err := openObjects(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.failed <- ended("S3 server", runGateway(ctx, be, s.ports, s.keys))
	}()
	s.stops = append(s.stops, func() { cancel(); <-done })
	return nil
}

func ended(service string, err error) error {
	if err == nil {
		err = errors.New("it stopped without an error")
	}
	return fmt.Errorf("%s ended: %w", service, err)
}

// watch announces the stack when it answers, then waits for its end.
func (s *stack) watch(ctx context.Context, readyFile string) error {
	ready := newReadiness(s.ports, s.keys)
	answered := make(chan error, 1)
	go func() { answered <- ready.await(ctx) }()
	select {
	case err := <-s.failed:
		return err
	case err := <-answered:
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if err := ready.write(readyFile); err != nil {
		return err
	}
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (s *stack) stop() {
	force := time.AfterFunc(stopTimeout, func() {
		s.log.Error("stop took too long; ending the process", "limit", stopTimeout)
		os.Exit(exitFault)
	})
	defer force.Stop()
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}
