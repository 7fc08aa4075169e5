package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
)

// verdict is what the comparison of the two runs found.
type verdict struct {
	kills     int
	want      map[string]string // canonical content of the undisturbed run
	compared  int
	different []string
	counts    store.Counts // of the disturbed run
	extremes  activities.CallExtremes
	limits    recipe.Sandbox
	calm      time.Duration
	storm     time.Duration
}

// compare reads both runs from their folders.
func compare(ctx context.Context, calm, storm *trial) (verdict, error) {
	v := verdict{kills: len(storm.killed), calm: calm.took, storm: storm.took}
	rec, err := recipe.Read(calm.recipe)
	if err != nil {
		return v, err
	}
	v.limits = rec.Sandbox
	want, err := calm.canonical(ctx, &v)
	if err != nil {
		return v, fmt.Errorf("undisturbed run: %w", err)
	}
	got, err := storm.canonical(ctx, &v)
	if err != nil {
		return v, fmt.Errorf("disturbed run: %w", err)
	}
	v.want, v.compared = want, len(want)
	v.different = differences(want, got)
	objects, err := openFolder(storm.dir)
	if err != nil {
		return v, err
	}
	events, err := store.ReadAudit(ctx, objects, runName)
	if err != nil {
		return v, err
	}
	v.counts = store.CountAudit(events)
	again, err := regenerated(ctx, objects)
	v.counts.TrajectoriesRegenerated += again
	return v, err
}

// addHalted compares a run that was stopped and started again with the undisturbed one.
func (v *verdict) addHalted(ctx context.Context, halted *trial) error {
	got, err := halted.canonical(ctx, v)
	if err != nil {
		return fmt.Errorf("stopped run: %w", err)
	}
	for _, d := range differences(v.want, got) {
		v.different = append(v.different, "after a stop: "+d)
	}
	return nil
}

// canonical reads what a trial's run decided, and how long its tool calls took.
func (t *trial) canonical(ctx context.Context, v *verdict) (map[string]string, error) {
	objects, err := openFolder(t.dir)
	if err != nil {
		return nil, err
	}
	e, err := activities.Extremes(ctx, objects, runName)
	if err != nil {
		return nil, err
	}
	v.extremes.Calls += e.Calls
	v.extremes.Timeouts += e.Timeouts
	v.extremes.MaxCPU = max(v.extremes.MaxCPU, e.MaxCPU)
	v.extremes.MaxWall = max(v.extremes.MaxWall, e.MaxWall)
	return activities.Canonical(ctx, objects, runName)
}

func differences(want, got map[string]string) []string {
	var out []string
	for key, digest := range want {
		if got[key] == "" {
			out = append(out, key+" is missing")
		} else if got[key] != digest {
			out = append(out, key+" differs")
		}
	}
	for key := range got {
		if want[key] == "" {
			out = append(out, key+" is extra")
		}
	}
	sort.Strings(out)
	return out
}

func (v verdict) print() {
	fmt.Printf("canonical content: %d objects and trajectories compared, %d differ\n", v.compared, len(v.different))
	for i, d := range v.different {
		if i == 20 {
			fmt.Printf("  and %d more\n", len(v.different)-i)
			break
		}
		fmt.Println("  " + d)
	}
	fmt.Printf("audit: %d trajectories sampled, %d regenerated; %d steps applied, %d of them in replays, %d twice\n",
		v.counts.Sampled, v.counts.TrajectoriesRegenerated, v.counts.Applied, v.counts.Replayed, v.counts.StepsAppliedTwice)
	fmt.Printf("tool calls: %d, %d timed out; the longest took %.0f ms CPU of %.0f and %.0f ms wall of %.0f\n",
		v.extremes.Calls, v.extremes.Timeouts, 1000*v.extremes.MaxCPU, 1000*v.limits.CPUSecs, 1000*v.extremes.MaxWall, 1000*v.limits.WallSecs)
}

// check says what is wrong, if anything.
func (v verdict) check() error {
	var errs []error
	demand := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	demand(len(v.different) == 0, "%d of %d parts of the canonical content differ", len(v.different), v.compared)
	demand(v.compared > 0, "nothing was compared")
	demand(v.kills >= 10, "%d kills, want at least 10", v.kills)
	demand(v.counts.TrajectoriesRegenerated == 0, "%d trajectories regenerated, want 0", v.counts.TrajectoriesRegenerated)
	demand(v.counts.StepsAppliedTwice == 0, "%d steps applied twice, want 0", v.counts.StepsAppliedTwice)
	demand(v.extremes.Calls > 0, "no tool call was made")
	demand(v.extremes.Timeouts == 0, "%d tool calls timed out, want 0: their outcome may depend on the machine", v.extremes.Timeouts)
	demand(2*v.extremes.MaxCPU < v.limits.CPUSecs && 2*v.extremes.MaxWall < v.limits.WallSecs,
		"a tool call came within half of its limits (%.0f ms CPU, %.0f ms wall): its outcome may depend on the machine", 1000*v.extremes.MaxCPU, 1000*v.extremes.MaxWall)
	return errors.Join(errs...)
}

// write leaves the figures as flat JSON.
func (v verdict) write(path string) error {
	same := 0
	if len(v.different) == 0 {
		same = 1
	}
	body, err := json.MarshalIndent(map[string]float64{
		"kills": float64(v.kills), "bit_identical": float64(same),
		"trajectories_regenerated": float64(v.counts.TrajectoriesRegenerated), "steps_applied_twice": float64(v.counts.StepsAppliedTwice),
		"seconds_undisturbed": v.calm.Seconds(), "seconds_disturbed": v.storm.Seconds(),
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(body, '\n'), 0o644)
}
