package main

import (
	"context"
	"fmt"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/rlbench"
	"github.com/spf13/cobra"
)

// rlCommand measures where the time of reinforcement learning goes.
func rlCommand() *cobra.Command {
	var o rlbench.Options
	var deadline time.Duration
	c := &cobra.Command{
		Use:   "rl",
		Short: "Where the time of a step goes; the engine while tools run; choosing and packing a batch of the paper's size",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(c.Context(), deadline, fmt.Errorf("the benchmark is not done after %v (--deadline)", deadline))
			defer cancel()
			return rlbench.Run(ctx, o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.Figures, "figures", ".bench/rl.json", "where the figures go")
	f.StringVar(&o.Restar, "restar", "bin/restar", "the restar binary, which trains")
	f.StringVar(&o.Recipe, "recipe", "deploy/recipes/learn.yaml", "recipe that the run derives from")
	f.StringVar(&o.Dir, "dir", ".run/bench-rl", "folder of the run, which is made anew")
	f.StringSliceVar(&o.Sections, "only", nil, "sections to run: "+rlbench.SectionNames()+" (default: all)")
	f.IntVar(&o.Steps, "steps", 6, "steps of the run")
	f.IntVar(&o.Rounds, "rounds", 3, "rounds of the agent loop, after one that warms up")
	f.IntVar(&o.Trajectories, "trajectories", 16384, "trajectories that a batch is chosen from")
	f.IntVar(&o.Tokens, "tokens", 8192, "tokens of each")
	f.BoolVar(&o.JSON, "json", false, "print the figures as JSON instead of a table")
	f.BoolVar(&o.Require, "require", false, "fail when a figure misses its bar")
	f.DurationVar(&deadline, "deadline", 30*time.Minute, "the longest the whole benchmark may take")
	return c
}
