package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/training"
	"github.com/spf13/cobra"
)

func runCommand() *cobra.Command {
	var o training.Options
	cmd := &cobra.Command{
		Use:   "run RECIPE.yaml",
		Short: "Train by a recipe; the same command again continues the run",
		Long: `Train by a recipe and show the progress until the run is done. Without --temporal the embedded stack and its workers are
started in --dir and end with the command. A run goes on from where it was when the same command is given again.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return training.RunRecipe(cmd.Context(), cmd.OutOrStdout(), args[0], o)
		},
	}
	o.Register(cmd.Flags())
	cmd.Flags().StringVar(&o.Curves, "curves", "", "file to write evaluations (pass@k and maj@k for every k) and figures of every step to, as JSON")
	cmd.Flags().Float64Var(&o.RequireGain, "require-gain", 0, "points of held-out pass@1 that the run must gain; with less the command fails (0: no demand)")
	return cmd
}
