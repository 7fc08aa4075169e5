package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lockFolder takes the data folder for this process. Two Temporal servers on
// one SQLite file both start and silently split the history, so this lock is
// what keeps a folder single-owner. The kernel drops it when the process dies.
func lockFolder(dir string) (*os.File, error) {
	path := filepath.Join(dir, "devserver.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, usagef("lock %s cannot be opened (%v); fix its permissions", path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, usagef("data folder %s is in use by process %s; stop that one or choose another folder with --dir", dir, strings.TrimSpace(string(holder)))
		}
		return nil, usagef("folder %s cannot be locked (%v); choose one on a file system with flock", dir, err)
	}
	if err := writePid(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("record the owner in %s: %w", path, err)
	}
	return f, nil
}

func writePid(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}
