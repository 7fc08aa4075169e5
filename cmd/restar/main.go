// Command restar trains reasoning models that use tools, in durable runs.
//
// Each subcommand is one file here; what they do lives in internal packages and in the rooms of restar.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/local"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/spf13/cobra"
)

func main() {
	sandbox.MaybeChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal ends the command in order, a second one at once
	os.Exit(local.ExitCode(execute(ctx, os.Args[1:], os.Stdout, os.Stderr), fault.User))
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	root, began := command()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err != nil && !*began {
		err = fault.AsUser(fmt.Errorf("%w; `restar --help` lists the commands", err)) // the command line itself
	}
	code := fault.Code(err)
	if err != nil && code != fault.Interrupted {
		fmt.Fprintln(errs, "restar:", fault.Text(err))
	}
	return code
}

// command builds the tree of commands. began becomes true once a command line has been understood.
func command() (root *cobra.Command, began *bool) {
	began = new(bool)
	root = &cobra.Command{
		Use:               "restar",
		Short:             "Train reasoning models that use tools, in runs that survive anything",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRun:  func(*cobra.Command, []string) { *began = true },
	}
	root.AddCommand(runCommand(), evalCommand(), statusCommand(), reportCommand(), devCommand(), workerCommand(), recipeCommand(), doctorCommand(), rankCommand(), sandboxCommand(), verifyCommand())
	root.AddCommand(serveCommand(), chatCommand())
	root.AddCommand(controlCommands()...)
	return root, began
}
