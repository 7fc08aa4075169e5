package store

import (
	"reflect"
	"sync"
	"testing"
)

func TestTheAuditLogCountsWhatHappenedTwice(t *testing.T) {
	s := NewMemory()
	sampled := func(sample int, existed bool, attempt int) Event {
		return Event{Sampled: &Sampled{Run: "r", Stage: "s1", Purpose: "rollout", Iteration: 1, Ordinal: 4, Slice: 0, Sample: sample, FinalExisted: existed, Attempt: attempt}}
	}
	applied := func(step, input int64, replay bool) Event {
		return Event{Applied: &Applied{Run: "r", Stage: "s1", Step: step, InputAppliedStep: input, Replay: replay}}
	}
	events := []Event{
		sampled(0, false, 1), sampled(1, false, 1),
		sampled(1, false, 2), // lost before its journal was durable: no fault
		applied(1, 0, false), applied(2, 1, false),
		applied(1, 0, true), applied(2, 1, true), // replay from a checkpoint: no fault
		applied(3, 2, false),
	}
	for _, e := range events {
		must(t, AppendAudit(t.Context(), s, "r", e))
	}
	got, err := ReadAudit(t.Context(), s, "r")
	must(t, err)
	if !reflect.DeepEqual(got, events) {
		t.Fatalf("read %d events, wrote %d, or in another order", len(got), len(events))
	}
	if c, want := CountAudit(got), (Counts{Sampled: 3, Applied: 5, Replayed: 2}); c != want {
		t.Fatalf("counts %+v, want %+v", c, want)
	}
	must(t, AppendAudit(t.Context(), s, "r", applied(3, 3, false), applied(2, 3, true), sampled(0, true, 2)))
	got, err = ReadAudit(t.Context(), s, "r")
	must(t, err)
	if c := CountAudit(got); c.StepsAppliedTwice != 2 || c.TrajectoriesRegenerated != 1 {
		t.Fatalf("counts %+v, want 2 steps applied twice and 1 trajectory regenerated", c)
	}
}

func TestConcurrentAuditWritersLoseNothing(t *testing.T) {
	s := NewMemory()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := AppendAudit(t.Context(), s, "r", Event{Applied: &Applied{Step: 1}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := ReadAudit(t.Context(), s, "r")
	must(t, err)
	if len(got) != 400 {
		t.Fatalf("%d events, want 400", len(got))
	}
}

func TestAnAuditEventOfNoKindIsRefused(t *testing.T) {
	if err := AppendAudit(t.Context(), NewMemory(), "r", Event{}); err == nil {
		t.Fatal("an empty event was accepted")
	}
}
