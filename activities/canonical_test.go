package activities

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/store"
)

func TestCanonicalContentLeavesMeasurementsOut(t *testing.T) {
	st, in, _, records := sliced(t)
	want := canonical(t, st)
	put(t, st, store.TimingsKey(benchRun, "one", 0, 0), []byte("{}"))
	put(t, st, leaseKey(benchRun, "one"), []byte(`{"epoch":99}`))
	must(t, store.AppendAudit(t.Context(), st, benchRun, store.Event{Applied: &store.Applied{Run: benchRun}}))
	refill(t, st, sliceJournal(in), edited(t, records, func(x *agent.Trajectory) { x.Timings.Generate += 12345 }), 1)
	wantSame(t, "other timings, audit, lease and flushes", canonical(t, st), want)
}

func TestCanonicalContentShowsAChangedToken(t *testing.T) {
	for name, change := range map[string]func(*agent.Trajectory){
		"a token":    func(x *agent.Trajectory) { x.IDs[len(x.IDs)-1] ^= 1 },
		"a log-prob": func(x *agent.Trajectory) { x.LogProbs[len(x.IDs)-1] *= 1.0000002 },
		"an outcome": func(x *agent.Trajectory) { x.Turns[0].Calls = []agent.ToolOutcome{{Type: agent.Timeout}} },
		"a reward":   func(x *agent.Trajectory) { x.Reward = 0.5 },
	} {
		st, in, _, records := sliced(t)
		want := canonical(t, st)
		refill(t, st, sliceJournal(in), edited(t, records, change), 3)
		changed := 0
		for key, d := range canonical(t, st) {
			if want[key] != d {
				changed++
			}
		}
		if changed != 1 {
			t.Errorf("%s changed: %d digests differ, want 1", name, changed)
		}
	}
}

func TestCanonicalContentIsEverythingElse(t *testing.T) {
	st, _, _ := undisturbed(t, 2)
	all := canonical(t, st)
	for _, part := range []string{"recipe.json", "one/batches/", "one/weights/", "one/checkpoints/", "one/metrics/", "sft/metrics/", "model/artifacts/"} {
		if len(without(all, part)) == len(all) {
			t.Errorf("no digest of %s", part)
		}
	}
	for key := range all {
		if strings.Contains(key, "timings") || strings.Contains(key, "audit") || strings.Contains(key, "lease") {
			t.Errorf("%s is no part of what a run decided", key)
		}
	}
}

func TestExtremesAreTheLargestOfAllCalls(t *testing.T) {
	st, in, counts, records := sliced(t)
	refill(t, st, sliceJournal(in), edited(t, records, func(x *agent.Trajectory) { x.Timings.MaxCPU, x.Timings.MaxWall = 3e9, 5e9 }), 1)
	got, err := Extremes(t.Context(), st, benchRun)
	must(t, err)
	if got != (CallExtremes{Calls: counts.Calls, MaxCPU: 3, MaxWall: 5}) {
		t.Fatalf("%+v, want 3 s and 5 s over %d calls", got, counts.Calls)
	}
}

// edited changes the last final record.
func edited(t *testing.T, records []store.Record, change func(*agent.Trajectory)) []store.Record {
	t.Helper()
	out := append([]store.Record(nil), records...)
	for i := len(out) - 1; ; i-- {
		if !strings.HasPrefix(out[i].Key, finalPrefix) {
			continue
		}
		x, err := agent.DecodeTrajectory(out[i].Value)
		must(t, err)
		change(&x)
		out[i].Value, err = x.Encode()
		must(t, err)
		return out
	}
}

// refill replaces a journal's segments.
func refill(t *testing.T, st store.Store, prefix string, records []store.Record, segment int) {
	t.Helper()
	entries, err := st.List(t.Context(), prefix+"/")
	must(t, err)
	for _, e := range entries {
		must(t, st.Delete(t.Context(), e.Key))
	}
	journal(t, st, prefix, records, segment)
}
