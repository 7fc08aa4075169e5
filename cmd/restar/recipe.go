package main

import (
	"fmt"

	"github.com/restar-rl/restar/cmd/restar/internal/inputs"
	"github.com/spf13/cobra"
)

func recipeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "recipe", Short: "Work with recipes", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use:   "check FILE",
		Short: "Check a recipe and every file that it names; nothing is started or written",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := inputs.ReadRecipe(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := inputs.Check(cmd.Context(), r); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: recipe %s is in order: %d SFT steps, %d stages with %d steps\n", args[0], r.Name, r.SFT.Steps, len(r.Stages), r.Steps())
			return err
		},
	})
	return cmd
}
