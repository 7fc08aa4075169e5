package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/answers"
	"github.com/spf13/cobra"
)

func verifyCommand() *cobra.Command {
	var o answers.Options
	cmd := &cobra.Command{
		Use:   "verify [PAIRS.jsonl]",
		Short: "Judge answers against reference answers: correct, wrong or unknown, by which path and why",
		Long: `Judge answers against reference answers.

Each line of the file (or of standard input) is {"gold": "...", "prediction": "..."}, with an optional "id". A prediction is an
answer or a whole text in which an answer is found. The verdict is correct, wrong or unknown, with the path that decided and the
reason. Verdicts come in the order of the lines. The exit code says whether everything could be judged, not how.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Path = args[0]
			}
			return answers.Verify(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	o.Register(cmd.Flags())
	return cmd
}
