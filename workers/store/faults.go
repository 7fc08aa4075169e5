package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Names of the points that crash tests stop at. The store announces the first
// four; activities announce the rest.
const (
	BeforePut      = "before-put"
	AfterPut       = "after-put"
	BeforeDelete   = "before-delete"
	AfterDelete    = "after-delete"
	BeforeApply    = "before-apply"
	AfterApply     = "after-apply"
	BeforeComplete = "before-complete"
)

// Environment of crash tests, read by FaultsFromEnv.
const (
	EnvKillAt   = "RESTAR_KILL_AT"
	EnvKillOnce = "RESTAR_KILL_ONCE"
)

// Faults is told of every named point that execution passes, with the key or
// name that it concerns. A nil Faults does nothing.
type Faults func(point, key string)

// Point announces a point.
func (f Faults) Point(point, key string) {
	if f != nil {
		f(point, key)
	}
}

// WithFaults announces each change of a store before it is asked for and after
// it is acknowledged.
func WithFaults(s Store, f Faults) Store {
	if f == nil {
		return s
	}
	return faulty{Store: s, faults: f}
}

type faulty struct {
	Store
	faults Faults
}

func (f faulty) Put(ctx context.Context, key string, body []byte, opt PutOptions) (ETag, error) {
	f.faults.Point(BeforePut, key)
	etag, err := f.Store.Put(ctx, key, body, opt)
	if err == nil {
		f.faults.Point(AfterPut, key)
	}
	return etag, err
}

func (f faulty) Delete(ctx context.Context, key string) error {
	f.faults.Point(BeforeDelete, key)
	err := f.Store.Delete(ctx, key)
	if err == nil {
		f.faults.Point(AfterDelete, key)
	}
	return err
}

// FaultsFromEnv is KillPoints of the environment; nil when nothing is asked.
func FaultsFromEnv() (Faults, error) {
	return KillPoints(os.Getenv(EnvKillAt), os.Getenv(EnvKillOnce))
}

// KillPoints parses a comma-separated list of POINT:SUBSTRING[:COUNT] into
// Faults that kill this process (SIGKILL) when POINT is passed for the
// COUNT-th time (default 1) with a key that contains SUBSTRING. With a
// onceFile, each of them kills once over all processes and restarts: a kill
// appends its text as a line to that file first.
func KillPoints(spec, onceFile string) (Faults, error) {
	if spec == "" {
		return nil, nil
	}
	var kills []*kill
	for _, text := range strings.Split(spec, ",") {
		k, err := parseKill(text)
		if err != nil {
			return nil, err
		}
		kills = append(kills, k)
	}
	return func(point, key string) {
		for _, k := range kills {
			if k.due(point, key) && claim(onceFile, k.text) {
				die()
			}
		}
	}, nil
}

type kill struct {
	text, point, part string
	left              atomic.Int64 // passes until it is due
}

func parseKill(text string) (*kill, error) {
	fields := strings.Split(text, ":")
	if len(fields) < 2 || len(fields) > 3 || fields[0] == "" {
		return nil, fmt.Errorf("kill point %q, want POINT:SUBSTRING or POINT:SUBSTRING:COUNT, e.g. %s:batches/000003", text, AfterPut)
	}
	k := &kill{text: text, point: fields[0], part: fields[1]}
	k.left.Store(1)
	if len(fields) == 3 {
		n, err := strconv.Atoi(fields[2])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("kill point %q: count %q, want a number from 1", text, fields[2])
		}
		k.left.Store(int64(n))
	}
	return k, nil
}

func (k *kill) due(point, key string) bool {
	return point == k.point && strings.Contains(key, k.part) && k.left.Add(-1) == 0
}

// claim records a kill in file, under a lock between processes, and tells
// whether it was this process's to make. Without a file every kill is.
func claim(file, text string) bool {
	if file == "" {
		return true
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(fmt.Sprintf("kill record %s cannot be opened: %v; set %s to a writable path", file, err, EnvKillOnce))
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		panic(fmt.Sprintf("kill record %s cannot be locked: %v", file, err))
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if lines.Text() == text {
			return false
		}
	}
	if _, err := f.WriteString(text + "\n"); err != nil {
		panic(fmt.Sprintf("kill record %s cannot be written: %v", file, err))
	}
	return true
}

// die ends the process as kill -9 does: no deferred call runs.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
