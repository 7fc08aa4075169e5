package main

import (
	"context"
	"fmt"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/learnbench"
	"github.com/spf13/cobra"
)

// learnCommand trains by several algorithms from several seeds and compares what they learned.
func learnCommand() *cobra.Command {
	var o learnbench.Options
	var deadline time.Duration
	c := &cobra.Command{
		Use:   "learn",
		Short: "What GRPO-RoC and its relatives learn, from several seeds; goes on where it was",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(c.Context(), deadline, fmt.Errorf("the benchmark is not done after %v (--deadline); the same command goes on", deadline))
			defer cancel()
			if o.Figures == "" {
				o.Figures = ".bench/learn.json"
				if o.Short {
					o.Figures = ".bench/learn-short.json"
				}
			}
			return learnbench.Run(ctx, o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.Figures, "figures", "", "where the figures go; charts go into the folder of that name without .json (default .bench/learn.json, or .bench/learn-short.json)")
	f.StringVar(&o.Recipe, "recipe", "deploy/recipes/learn.yaml", "recipe that every run derives from")
	f.StringVar(&o.Restar, "restar", "bin/restar", "the restar binary, which trains")
	f.StringVar(&o.Dir, "dir", ".run/learn", "folder of the runs; each commit of the learning code has its own below it")
	f.StringVar(&o.Key, "key", "", "go on with the runs of this commit's folder, and report them under its name (default: the checkout's own)")
	f.BoolVar(&o.Short, "short", false, "one seed of GRPO-RoC and of the ablation only")
	f.StringSliceVar(&o.Only, "only", nil, "runs to make, such as grpo-roc-1 (default: all)")
	f.BoolVar(&o.JSON, "json", false, "print the figures as JSON instead of a table")
	f.BoolVar(&o.Require, "require", false, "fail when a figure misses its bar")
	f.DurationVar(&deadline, "deadline", 6*time.Hour, "the longest the whole benchmark may take")
	return c
}
