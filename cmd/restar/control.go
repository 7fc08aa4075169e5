package main

import (
	"fmt"

	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/restar-rl/restar/cmd/restar/internal/training"
	"github.com/restar-rl/restar/workflows"
	"github.com/spf13/cobra"
)

func controlCommands() []*cobra.Command {
	return []*cobra.Command{
		controlCommand("pause", workflows.UpdatePause, "Pause a run after the step in progress", "pauses after the step in progress"),
		controlCommand("resume", workflows.UpdateResume, "Let a paused run go on", "goes on"),
		controlCommand("stop", workflows.UpdateStop, "End a run after the step in progress and keep everything", "ends after the step in progress"),
	}
}

func controlCommand(name, wish, short, done string) *cobra.Command {
	var o session.Options
	cmd := &cobra.Command{
		Use:   name + " RUN",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := session.Attach(cmd.Context(), o)
			if err != nil {
				return err
			}
			defer s.Close()
			if err := training.Ask(cmd.Context(), s.Client, args[0], wish); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "run %s %s\n", args[0], done)
			return err
		},
	}
	o.Register(cmd.Flags())
	return cmd
}
