package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/sandboxbench"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/spf13/cobra"
)

// sandboxCommand plays the sandbox service against code-judge's design.
func sandboxCommand() *cobra.Command {
	var o sandboxbench.Options
	var tier string
	var deadline time.Duration
	c := &cobra.Command{
		Use:   "sandbox",
		Short: "Sandbox service beside code-judge's design; bursts; isolation; verifier",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(c.Context(), deadline, fmt.Errorf("the benchmark is not done after %v (--deadline)", deadline))
			defer cancel()
			o.Tier = sandbox.Tier(tier)
			return sandboxbench.Run(ctx, o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	least := "B"
	if os.Geteuid() == 0 {
		least = "A"
	}
	f := c.Flags()
	f.StringVar(&o.Figures, "figures", ".bench/sandbox.json", "where the figures go")
	f.StringVar(&o.Restar, "restar", "bin/restar", "the restar binary, whose sandbox service is measured")
	f.StringVar(&o.Peers, "peers", ".ci/peers", "folder of the peers' programs")
	f.StringVar(&o.Prototype, "prototype", os.Getenv("RESTAR_SANDBOX_PROTOTYPE"), "folder with a prototype's built program sbx to compare with (RESTAR_SANDBOX_PROTOTYPE)")
	f.StringVar(&tier, "isolation", least, "tier that the service runs in")
	f.StringSliceVar(&o.Sections, "only", nil, "sections to run: "+sandboxbench.SectionNames()+" (default: all)")
	f.IntVar(&o.Rounds, "rounds", 2, "turns of every contestant")
	f.IntVar(&o.Burst, "burst", 45000, "calls at once against an executor in process")
	f.IntVar(&o.Real, "real", 3000, "calls at once against the real sandbox")
	f.BoolVar(&o.JSON, "json", false, "print the figures as JSON instead of a table")
	f.BoolVar(&o.Require, "require", false, "fail when a figure misses its bar")
	f.DurationVar(&deadline, "deadline", 30*time.Minute, "the longest the whole benchmark may take")
	return c
}

// sandboxNodeCommand is a service with an executor of the benchmark's choice, in a process of its own.
func sandboxNodeCommand() *cobra.Command {
	var o sandboxbench.NodeOptions
	c := &cobra.Command{
		Use:    "sandbox-node",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(c *cobra.Command, _ []string) error { return sandboxbench.Node(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", "", "address")
	f.DurationVar(&o.Wait, "wait", 0, "how long the executor in process takes")
	f.IntVar(&o.Running, "running", 0, "calls at once")
	f.StringVar(&o.Pool, "pool", "", "a real pool of this tier instead")
	f.BoolVar(&o.Without, "without", false, "leave out the layers that can be left out")
	return c
}
