package main

import (
	"github.com/restar-rl/restar/workers/ranks"
	"github.com/spf13/cobra"
)

func rankCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "rank",
		Short:  "Share the steps of a trainer, which starts this itself",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return ranks.Follow(cmd.Context()) },
	}
}
