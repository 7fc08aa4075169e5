package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/spf13/cobra"
)

func workerCommand() *cobra.Command {
	var o session.WorkerOptions
	cmd := &cobra.Command{
		Use:   "worker --roles ROLE,...",
		Short: "Work for the runs of a Temporal server until Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return session.Work(cmd.Context(), o)
		},
	}
	o.Register(cmd.Flags())
	return cmd
}
