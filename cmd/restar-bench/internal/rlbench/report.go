package rlbench

import (
	"fmt"
	"io"
)

// bar is what a figure shall be.
type bar struct {
	figure string
	value  float64
	most   bool // value is an upper bound
	says   string
}

func bars() []bar {
	return []bar{
		{figure: "occupancy_50ms_tools", value: 0.9, says: "tokens a second of the agent loop with tools of 50 ms, share of those with tools of no time"},
		{figure: "select_pack_seconds", value: 10, most: true, says: "seconds from trajectories in memory to packed passes"},
		{figure: "select_pack_memory_ratio", value: 2, most: true, says: "memory for that beside the trajectories, multiple of their size"},
	}
}

func (k bar) holds(v float64) bool {
	if k.most {
		return v <= k.value
	}
	return v >= k.value
}

func (k bar) bound() string {
	if k.most {
		return fmt.Sprintf("<= %g", k.value)
	}
	return fmt.Sprintf(">= %g", k.value)
}

// missed lists what was measured and does not meet its bar.
func (b *bench) missed() []string {
	var out []string
	for _, k := range bars() {
		if v, ok := b.figures[k.figure]; ok && !k.holds(v) {
			out = append(out, fmt.Sprintf("%s is %.3g, want %s", k.figure, v, k.bound()))
		}
	}
	return out
}

// report prints the figures for people.
func (b *bench) report(out io.Writer) error {
	f := b.figures
	if step, ok := f["step_seconds"]; ok {
		fmt.Fprintf(out, "a step of %.2f s: engine %.1f%%, sandbox %.1f%%, verdicts %.2f%%, training %.1f%%, all else %.1f%% of wall time; programs %.1f%% of the CPUs\n",
			step, 100*f["share_rollout"], 100*f["share_sandbox"], 100*f["share_verify"], 100*f["share_train"], 100*f["share_other"], 100*f["sandbox_cpu_share"])
	}
	if n, ok := f["agent_trajectories"]; ok {
		fmt.Fprintf(out, "agent loop, %.0f trajectories with %.0f calls: %.0f tokens/s with tools of no time, %.0f with tools of 50 ms\n",
			n, f["agent_calls"], f["agent_tokens_per_s_0ms_tools"], f["agent_tokens_per_s_50ms_tools"])
	}
	if n, ok := f["select_pack_trajectories"]; ok {
		fmt.Fprintf(out, "choosing and packing %.0f trajectories of %.0f tokens (%.0f MiB): %.2f s (%.2f s of CPU), of which %.2f s until the batch is encoded; %.2f times their size beside them\n",
			n, f["select_pack_tokens"], f["select_pack_trajectory_mib"], f["select_pack_seconds"], f["select_pack_cpu_seconds"], f["select_seconds"], f["select_pack_memory_ratio"])
	}
	for _, k := range bars() {
		if v, ok := f[k.figure]; ok {
			mark := "ok  "
			if !k.holds(v) {
				mark = "MISS"
			}
			fmt.Fprintf(out, "%s  %-26s %8.4g  %-7s %s\n", mark, k.figure, v, k.bound(), k.says)
		}
	}
	return nil
}
