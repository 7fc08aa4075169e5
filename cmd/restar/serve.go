package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/serving"
	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	var o serving.ServeOptions
	cmd := &cobra.Command{
		Use:   "serve FOLDER",
		Short: "Serve a model over HTTP as OpenAI's interface does",
		Long: `Serve a Hugging Face folder, or the model that a run exported in its --dir, until Ctrl-C: /v1/chat/completions with tools and
streaming, /v1/completions with token ids and log-probs, /v1/models, /metrics for Prometheus and /health.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serving.Serve(cmd.Context(), cmd.OutOrStdout(), args[0], o)
		},
	}
	o.Register(cmd.Flags())
	return cmd
}
