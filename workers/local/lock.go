package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockEvery is the pause between two tries for a lock.
const lockEvery = 50 * time.Millisecond

// takeFolder locks the folder for this process and sees its former server
// gone: after kill -9 of a supervisor the kernel kills the server, but its
// files and ports come free a moment later.
func takeFolder(ctx context.Context, dir string, progress func(string)) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	lock, err := lockFile(ctx, filepath.Join(dir, "restar.lock"), dir, progress)
	if err != nil {
		return nil, err
	}
	server, err := lockFile(ctx, filepath.Join(dir, "server", "devserver.lock"), dir, progress)
	if err != nil {
		lock.Close()
		return nil, err
	}
	server.Close()
	if err = lock.Truncate(0); err == nil {
		_, err = lock.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	if err != nil {
		lock.Close()
		return nil, userf("lock %s cannot be written (%v); free space or fix its permissions", lock.Name(), err)
	}
	return lock, nil
}

// lockFile waits for an exclusive lock until ctx ends; then it names the holder.
func lockFile(ctx context.Context, path, dir string, progress func(string)) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, userf("lock %s cannot be opened (%v); fix its permissions", path, err)
	}
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, userf("folder %s cannot be locked (%v); choose one on a file system with flock", dir, err)
		}
		if !told {
			told = true
			progress(fmt.Sprintf("waiting for process %s to leave the folder %s (at most %v)", holder(f), dir, ownerTimeout))
		}
		if !wait(ctx, lockEvery) {
			defer f.Close()
			return nil, userf("folder %s is in use by process %s; stop that one (kill %s) or choose another folder", dir, holder(f), holder(f))
		}
	}
}

// holder is the process id that the owner of a lock wrote into it.
func holder(f *os.File) string {
	body, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if pid := strings.TrimSpace(string(body)); pid != "" {
		return pid
	}
	return "(unknown)"
}

// wait sleeps for d; false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
