package main

import (
	"github.com/restar-rl/restar/cmd/restar/internal/serving"
	"github.com/spf13/cobra"
)

func chatCommand() *cobra.Command {
	var o serving.ChatOptions
	cmd := &cobra.Command{
		Use:   "chat FOLDER",
		Short: "Talk to a model and its Python tool in the terminal",
		Long: `Talk to a Hugging Face folder, or to the model that a run exported in its --dir. Tool calls run in the sandbox; the model reads
what it was trained with. Input that is no terminal is one question: echo "What is 6*7?" | restar chat FOLDER`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serving.Chat(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), args[0], o)
		},
	}
	o.Register(cmd.Flags())
	return cmd
}
