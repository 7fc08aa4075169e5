package rlbench

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/workers/sandbox"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSharesAreDisjointAndAddUpToOne(t *testing.T) {
	dir := t.TempDir()
	restar := filepath.Join(dir, "restar")
	must(t, os.WriteFile(restar, []byte(`#!/bin/sh
echo '{"step_seconds_rollout": 5, "step_seconds_sandbox": 1, "step_seconds_verify": 0.5, "step_seconds_tool_cpu": 0.8, "step_seconds_train": 3, "steps": 4}' > "$8"
echo '{"seconds_of_stages": 40}' > "${10}"
`), 0o700))
	b := &bench{Options: Options{Restar: restar, Recipe: "../../../../deploy/recipes/learn.yaml", Dir: filepath.Join(dir, "run"), Steps: 4}, figures: match.Figures{}, out: new(strings.Builder)}
	must(t, b.shares(t.Context()))
	sum := 0.0
	for name, want := range map[string]float64{"share_rollout": 0.35, "share_sandbox": 0.1, "share_verify": 0.05, "share_train": 0.3, "share_other": 0.2} {
		if got := b.figures[name]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		sum += b.figures[name]
	}
	if math.Abs(sum-1) > 1e-12 || b.figures["step_seconds"] != 10 {
		t.Errorf("shares add up to %v of a step of %v s, want 1 of 10 s", sum, b.figures["step_seconds"])
	}
	if err := b.share(times{}, 40); err == nil {
		t.Error("a run without steps is no error")
	}
}

func TestSelectionPacksWhatWasChosenUnderNamesThatStay(t *testing.T) {
	b := &bench{Options: Options{Trajectories: 4 * groupSize, Tokens: 2500}, figures: match.Figures{}}
	for _, g := range b.trajectories() {
		for i := range g {
			must(t, g[i].Check())
		}
	}
	must(t, b.selection(t.Context()))
	for _, name := range []string{"select_pack_seconds", "select_seconds", "select_pack_cpu_seconds", "select_pack_memory_ratio", "select_pack_trajectory_mib", "select_pack_trajectories", "select_pack_tokens"} {
		if v, ok := b.figures[name]; !ok || v <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
}

var kept []byte

func TestTheHeapsPeakIsSeenAfterItsMemoryIsGivenBack(t *testing.T) {
	peak := watchHeap()
	kept = make([]byte, 64<<20)
	time.Sleep(20 * heapEvery)
	kept = nil
	if got := peak(); got < 63<<20 {
		t.Errorf("the heap grew by %v bytes, want the 64 MiB allocated but for what else was let go", got)
	}
}

func TestTheToolAnswersTheSameWhateverItsTime(t *testing.T) {
	quick, err := waiting{}.Run(t.Context(), sandbox.Call{})
	must(t, err)
	slow, err := waiting{time.Millisecond}.Run(t.Context(), sandbox.Call{})
	must(t, err)
	if quick != slow || quick.Status != sandbox.Success {
		t.Errorf("%+v and %+v, want the same success", quick, slow)
	}
}

func TestAMissedBarIsNamedAndWhatWasNotMeasuredIsNone(t *testing.T) {
	b := &bench{figures: match.Figures{"occupancy_50ms_tools": 0.8, "select_pack_seconds": 3}}
	if got := b.missed(); len(got) != 1 || !strings.Contains(got[0], "occupancy_50ms_tools is 0.8, want >= 0.9") {
		t.Errorf("missed %q", got)
	}
	var out strings.Builder
	must(t, b.report(&out))
	if !strings.Contains(out.String(), "MISS  occupancy_50ms_tools") || !strings.Contains(out.String(), "ok    select_pack_seconds") || strings.Contains(out.String(), "memory_ratio") {
		t.Errorf("report:\n%s", out.String())
	}
}
