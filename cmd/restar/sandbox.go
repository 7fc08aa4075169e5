package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/sandboxnode"
	"github.com/spf13/cobra"
)

func sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Run tool calls for rollouts elsewhere: a service of isolated Python",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(sandboxServeCommand(), sandboxDoctorCommand())
	return cmd
}

func sandboxServeCommand() *cobra.Command {
	var o sandboxnode.Options
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve isolated Python over HTTP: code-judge's interface, and a native one for restar's workers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sandboxnode.Serve(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	o.Register(cmd.Flags())
	return cmd
}

func sandboxDoctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Try every layer of isolation inside a real call, and say what gives the missing ones",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sandboxnode.Doctor(cmd.Context(), cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
