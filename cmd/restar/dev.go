package main

import (
	"fmt"

	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/spf13/cobra"
)

func devCommand() *cobra.Command {
	var o session.Options
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the embedded stack and its workers until Ctrl-C",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			o.Temporal, o.S3 = "", "" // the embedded one is what is asked for
			s, err := session.Open(cmd.Context(), o, func(text string) { fmt.Fprintln(out, text) })
			if err != nil {
				return err
			}
			defer s.Close()
			fmt.Fprintf(out, "Temporal UI: %s\nready; Ctrl-C ends it, runs go on from where they were when it is started again\n", s.UI)
			ctx, cancel := s.Guard(cmd.Context())
			defer cancel()
			<-ctx.Done()
			return session.Ended(ctx)
		},
	}
	o.Register(cmd.Flags())
	return cmd
}
