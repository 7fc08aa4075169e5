package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/training"
	"github.com/spf13/cobra"
)

func evalCommand() *cobra.Command {
	var o training.Options
	e := training.DefaultEvaluation()
	cmd := &cobra.Command{
		Use:   "eval MODEL_FOLDER PROBLEMS.jsonl",
		Short: "Evaluate a Hugging Face model folder on problems",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.Model, e.Problems = args[0], args[1]
			return training.RunEvaluation(cmd.Context(), cmd.OutOrStdout(), e, o)
		},
	}
	o.Register(cmd.Flags())
	e.Register(cmd.Flags())
	return cmd
}
