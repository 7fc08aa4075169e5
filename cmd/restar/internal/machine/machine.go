// Package machine finds out what this machine gives to runs of the embedded stack, and says how to get what is missing.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/local"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/client"
	"golang.org/x/sys/unix"
)

// minFree is the space below which no run is started: the embedded server's database and logs take tens of MB, and two
// checkpoints of the quickstart's model, batches and journals some more.
const minFree = 512 << 20

// sandboxTimeout bounds the start of one isolated interpreter with its modules, a second where nothing else is busy.
const sandboxTimeout = 2 * time.Minute

// Ready makes sure, before anything is written, that a run of the embedded stack can work here.
func Ready(ctx context.Context, dir string, s recipe.Sandbox) error {
	if _, err := local.FindDevserver(); err != nil {
		return err
	}
	if err := space(dir, freeBytes); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sandboxTimeout)
	defer cancel()
	if len(s.Endpoints) > 0 {
		return reachable(ctx, s.Endpoints)
	}
	pool, err := sandbox.Start(ctx, sandbox.Options{Tier: sandbox.Tier(s.Isolation), Preload: s.Preload, Zygotes: 1, Warm: 1, MaxRunning: 1})
	if err != nil {
		return fault.Userf("the recipe asks for sandbox.isolation %s, which this machine does not give: %w; `restar doctor` shows every layer", s.Isolation, err)
	}
	pool.Close()
	return nil
}

// reachTimeout is how long a sandbox service may take to answer before a run is not started.
const reachTimeout = 10 * time.Second

// reachable makes sure that one of the sandbox services takes calls.
func reachable(ctx context.Context, endpoints []string) error {
	c, err := client.New(client.Options{Endpoints: endpoints})
	if err != nil {
		return fault.AsUser(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := c.Await(ctx); err != nil {
		return fault.Userf("the recipe names sandbox.endpoints, and none is ready: %w; start them with `restar sandbox serve`", err)
	}
	return nil
}

// space refuses a folder whose file system is too full; free reports the bytes free below an existing folder.
func space(dir string, free func(string) (uint64, error)) error {
	at, err := existing(dir)
	if err != nil {
		return err
	}
	n, err := free(at)
	if err != nil {
		return fmt.Errorf("free space of %s: %w", at, err)
	}
	if n < minFree {
		return fault.Userf("no space: the file system of %s has %d MiB free, want at least %d; free some or choose another folder with --dir", dir, n>>20, minFree>>20)
	}
	return nil
}

// existing is dir or the nearest folder above it that exists.
func existing(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		st, err := os.Stat(at)
		if err == nil && st.IsDir() {
			return at, nil
		}
		if err == nil {
			return "", fault.Userf("%s is not a folder; choose another with --dir", at)
		}
		if errors.Is(err, fs.ErrPermission) {
			return "", fault.Userf("%w: a folder on the way may not be entered; mend its permissions or choose another with --dir", err)
		}
		if parent := filepath.Dir(at); parent != at {
			at = parent
			continue
		}
		return "", err
	}
}

func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return st.Bavail * uint64(st.Bsize), err
}
