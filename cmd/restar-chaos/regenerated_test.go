package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/store"
)

func TestATrajectorySampledAfterItsFinalRecordIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		began time.Duration // of the second attempt, after the final record
		want  int
	}{"sampled before": {-time.Second, 0}, "sampled again": {time.Second, 1}} {
		t.Run(name, func(t *testing.T) {
			f := &folder{t.TempDir()}
			at := time.Now()
			put(t, f, store.JournalPrefix(runName, "stage1", store.Rollouts, "000003", 7, 1)+"/000000", store.Record{Key: "final/9", Value: json.RawMessage(`{}`)}, at)
			put(t, f, store.AuditPrefix(runName)+"segment", store.Event{Sampled: &store.Sampled{
				Run: runName, Stage: "stage1", Purpose: "rollout", Name: "000003", Ordinal: 7, Slice: 1, Sample: 9,
			}}, at.Add(c.began))
			got, err := regenerated(context.Background(), f)
			if err != nil || got != c.want {
				t.Errorf("counted %d (%v), want %d", got, err, c.want)
			}
		})
	}
}

func put(t *testing.T, f *folder, key string, v any, at time.Time) {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.root, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(body, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}
