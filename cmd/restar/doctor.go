package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/machine"
	"github.com/spf13/cobra"
)

func doctorCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine gives: sandbox layers, Python, ports, disk space, the embedded stack",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return machine.Doctor(cmd.Context(), cmd.OutOrStdout(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".restar", "data folder of the embedded stack")
	return cmd
}
