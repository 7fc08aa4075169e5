package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/engine"
)

// engineCommand plays kernels, training step and sampler against PyTorch, oneDNN and llama.cpp.
func engineCommand() *cobra.Command {
	var o engine.Options
	var deadline time.Duration
	c := &cobra.Command{
		Use:   "engine",
		Short: "Kernels, training step and sampling beside PyTorch, oneDNN and llama.cpp",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(c.Context(), deadline, fmt.Errorf("the benchmark is not done after %v (--deadline)", deadline))
			defer cancel()
			return engine.Run(ctx, o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.Figures, "figures", ".bench/engine.json", "where the figures go")
	f.StringVar(&o.Scripts, "scripts", ".ci/peers", "folder of the peers' programs")
	f.StringVar(&o.Peers, "peers", ".cache/peers", "folder that .ci/peers/install.sh installs into")
	f.StringSliceVar(&o.Sections, "only", nil, "sections to run: "+engine.SectionNames()+" (default: all)")
	f.StringSliceVar(&o.Sizes, "sizes", nil, "models to run: "+engine.SizeNames()+" (default: all)")
	f.BoolVar(&o.JSON, "json", false, "print the figures as JSON instead of a table")
	f.BoolVar(&o.Require, "require", false, "fail when a ratio is below its bar")
	f.DurationVar(&deadline, "deadline", 30*time.Minute, "the longest the whole benchmark may take")
	return c
}

// contestantCommand is restar's own side of a match, in a process of its own.
func contestantCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "contestant TASK JOB",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return engine.Contest(c.Context(), args[0], args[1], c.InOrStdin(), c.OutOrStdout())
		},
	}
}
