package activities

import (
	"context"
	"fmt"
	"strings"

	"github.com/restar-rl/restar/workers/store"
)

// Canonical returns the digests of everything a run decided: what two runs of one recipe must agree on to the bit. Its keys
// are store keys, or a journal's prefix and a sample. Timings, audit segments, leases and how journals were flushed are
// left out.
//
// A sample with two final records is an error: it was generated twice.
func Canonical(ctx context.Context, s store.Store, run string) (map[string]string, error) {
	entries, err := s.List(ctx, store.RunPrefix(run))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	journals := map[string]bool{}
	for _, e := range entries {
		switch kind := kindOf(strings.TrimPrefix(e.Key, store.RunPrefix(run))); kind {
		case "journal":
			journals[e.Key[:strings.LastIndexByte(e.Key, '/')]] = true
		case "canonical":
			body, _, err := s.Get(ctx, e.Key)
			if err != nil {
				return nil, err
			}
			out[e.Key] = digest(body)
		}
	}
	for prefix := range journals {
		if err := addJournal(ctx, s, prefix, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// kindOf sorts a key of a run: a journal segment, canonical content, or neither.
func kindOf(key string) string {
	parts := strings.Split(key, "/")
	if len(parts) == 1 {
		return "canonical" // the recipe
	}
	switch parts[1] {
	case string(store.Rollouts), string(store.Evals), string(store.Filter):
		return "journal"
	case "timings":
		return ""
	}
	last := parts[len(parts)-1]
	if parts[0] == "audit" || last == "lease.json" {
		return ""
	}
	return "canonical"
}

// addJournal adds the trajectories of one slice, without their timings.
func addJournal(ctx context.Context, s store.Store, prefix string, out map[string]string) error {
	records, err := store.ReadJournal(ctx, s, prefix)
	if err != nil {
		return err
	}
	logs, err := readLogs(records)
	if err != nil {
		return fmt.Errorf("%s: %w", prefix, err)
	}
	for sample, t := range logs.final {
		d, err := t.Digest()
		if err != nil {
			return err
		}
		out[fmt.Sprintf("%s#%d", prefix, sample)] = d
	}
	return nil
}

// CallExtremes say how close a run's tool calls came to their limits: the largest CPU and wall times of those that were not
// timed out, in seconds, and how many were.
type CallExtremes struct {
	Calls    int
	Timeouts int
	MaxCPU   float64
	MaxWall  float64
}

// Extremes reads how close the calls of a run came to their limits.
func Extremes(ctx context.Context, s store.Store, run string) (CallExtremes, error) {
	entries, err := s.List(ctx, store.RunPrefix(run))
	if err != nil {
		return CallExtremes{}, err
	}
	var out CallExtremes
	seen := map[string]bool{}
	for _, e := range entries {
		prefix := e.Key[:strings.LastIndexByte(e.Key, '/')]
		if kindOf(strings.TrimPrefix(e.Key, store.RunPrefix(run))) != "journal" || seen[prefix] {
			continue
		}
		seen[prefix] = true
		records, err := store.ReadJournal(ctx, s, prefix)
		if err != nil {
			return out, err
		}
		logs, err := readLogs(records)
		if err != nil {
			return out, err
		}
		for _, t := range logs.final {
			c := t.Counts()
			out.Calls += c.Calls
			out.Timeouts += c.Timeouts
			out.MaxCPU = max(out.MaxCPU, t.Timings.MaxCPU.Seconds())
			out.MaxWall = max(out.MaxWall, t.Timings.MaxWall.Seconds())
		}
	}
	return out, nil
}
