// Command restar-devserver is the embedded stack: a Temporal server on SQLite,
// its Web UI, and an S3 server over plain files, in one process and one data
// folder. It knows nothing of training.
//
// Invariants:
//   - one process owns a data folder (flock); a second one refuses;
//   - what was acknowledged is on disk: SQLite runs with WAL and
//     synchronous=FULL, objects are synced before their PUT is answered;
//   - the ready file appears, atomically, only when every service answers;
//   - kill -9 at any moment leaves a folder from which the next start goes on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes: exitUsage is the caller's to fix (port, folder, space, version);
// exitFault is the server's own. The Go runtime ends a crash with exitUsage too,
// so a supervisor, which sets envSupervised to 1, is told exitConfig (EX_CONFIG of
// BSD's sysexits.h) instead.
const (
	exitFault     = 1
	exitUsage     = 2
	exitConfig    = 78
	envSupervised = "RESTAR_SUPERVISED"
)

// usageError is a condition that the caller can fix; its text says how.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

func main() {
	opt, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = serve(ctx, opt)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "restar-devserver:", err)
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	var u usageError
	switch {
	case !errors.As(err, &u):
		return exitFault
	case os.Getenv(envSupervised) == "1":
		return exitConfig
	}
	return exitUsage
}
