// Command restar-bench measures restar beside its peers on the machine at hand: each subcommand plays one part of restar against
// programs of the same purpose, in turns and in one run, and tells which fraction of the machine's limit is reached.
//
// A ratio that is missed is a result and no failure, unless --require is given.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/workers/sandbox"
)

// Exit codes, as those of restar.
const (
	internalFault = 1
	userError     = 2
	interrupted   = 130
)

func main() {
	sandbox.MaybeChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal ends the command in order, a second one at once
	os.Exit(execute(ctx, os.Args[1:]))
}

func execute(ctx context.Context, args []string) int {
	began := false
	root := &cobra.Command{
		Use:               "restar-bench",
		Short:             "Measure restar beside its peers",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRun:  func(*cobra.Command, []string) { began = true },
	}
	root.AddCommand(engineCommand(), contestantCommand(), sandboxCommand(), sandboxNodeCommand(), learnCommand(), rlCommand())
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "restar-bench: interrupted")
		return interrupted
	}
	fmt.Fprintln(os.Stderr, "restar-bench:", err)
	if !began || errors.Is(err, match.ErrInput) {
		return userError
	}
	return internalFault
}
