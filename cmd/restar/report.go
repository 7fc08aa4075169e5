package main

import (
	"fmt"

	"github.com/restar-rl/restar/cmd/restar/internal/machine"
	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/restar-rl/restar/cmd/restar/internal/training"
	"github.com/spf13/cobra"
)

func reportCommand() *cobra.Command {
	var o session.Options
	var file string
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Write the HTML report of a run, finished or not",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				file = training.ReportFile(o.Dir)
			}
			if err := machine.Writable(machine.Output{Path: file, Fix: "choose another file with --out"}); err != nil {
				return err
			}
			s, err := session.Attach(cmd.Context(), o)
			if err != nil {
				return err
			}
			defer s.Close()
			if err := training.WriteReport(cmd.Context(), s.Store, args[0], file); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), file)
			return err
		},
	}
	o.Register(cmd.Flags())
	cmd.Flags().StringVar(&file, "out", "", "file to write (default: report.html in --dir)")
	return cmd
}
