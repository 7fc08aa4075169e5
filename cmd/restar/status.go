package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/restar-rl/restar/cmd/restar/internal/training"
	"github.com/spf13/cobra"
)

func statusCommand() *cobra.Command {
	var o session.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Tell where a run is, or list the runs",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := session.Attach(cmd.Context(), o)
			if err != nil {
				return err
			}
			defer s.Close()
			if len(args) == 0 {
				return training.WriteList(cmd.Context(), cmd.OutOrStdout(), s.Client, asJSON)
			}
			return training.WriteStatus(cmd.Context(), cmd.OutOrStdout(), s.Client, args[0], asJSON)
		},
	}
	o.Register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
