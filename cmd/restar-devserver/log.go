package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"os"

	tlog "go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// maxLog is the size at which a start moves the log aside: large enough to
// hold days of warnings, small enough to read.
const maxLog = 64 << 20

// openLog opens the log file and sends there what the embedded programs print
// by themselves.
func openLog(path string) (*os.File, *slog.Logger, error) {
	if st, err := os.Stat(path); err == nil && st.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, usagef("log %s cannot be moved to %s.1 (%v); fix its permissions or choose another with --log", path, path, err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, usagef("log %s cannot be opened (%v); choose another with --log", path, err)
	}
	os.Stdout = f
	log.SetOutput(f)
	return f, slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelWarn})), nil
}

// serverLog is Temporal's logger over slog.
type serverLog struct{ l *slog.Logger }

var _ tlog.WithLogger = serverLog{}

func attrs(tags []tag.Tag) []slog.Attr {
	out := make([]slog.Attr, len(tags))
	for i, t := range tags {
		out[i] = slog.Any(t.Key(), t.Value())
	}
	return out
}

func (s serverLog) log(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background()
	if s.l.Enabled(ctx, level) {
		s.l.LogAttrs(ctx, level, msg, attrs(tags)...)
	}
}

func (s serverLog) Debug(m string, t ...tag.Tag)  { s.log(slog.LevelDebug, m, t) }
func (s serverLog) Info(m string, t ...tag.Tag)   { s.log(slog.LevelInfo, m, t) }
func (s serverLog) Warn(m string, t ...tag.Tag)   { s.log(slog.LevelWarn, m, t) }
func (s serverLog) Error(m string, t ...tag.Tag)  { s.log(slog.LevelError, m, t) }
func (s serverLog) DPanic(m string, t ...tag.Tag) { s.log(slog.LevelError, m, t) }

// Panic and Fatal keep the server's meaning, and say why on stderr as well.
func (s serverLog) Panic(m string, t ...tag.Tag) {
	s.log(slog.LevelError, m, t)
	panic(m)
}

func (s serverLog) Fatal(m string, t ...tag.Tag) {
	s.log(slog.LevelError, m, t)
	fmt.Fprintf(os.Stderr, "restar-devserver: the Temporal server gave up: %s %v\n", m, attrs(t))
	os.Exit(exitFault)
}

func (s serverLog) With(t ...tag.Tag) tlog.Logger {
	args := make([]any, len(t))
	for i, a := range attrs(t) {
		args[i] = a
	}
	return serverLog{s.l.With(args...)}
}

// discard is for clients whose refusals are reported by their caller.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
