package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/restar-rl/restar/workers/store"
)

// regenerated counts the trajectories that were sampled after their final record was durable. It trusts no flag that the run
// wrote about itself: the order is that of the files, each written once.
func regenerated(ctx context.Context, f *folder) (int, error) {
	entries, err := f.List(ctx, store.AuditPrefix(runName))
	if err != nil {
		return 0, err
	}
	count, journals := 0, map[string]map[string]time.Time{}
	for _, e := range entries {
		began, err := f.written(e.Key)
		if err != nil {
			return 0, err
		}
		events, err := f.sampled(e.Key)
		if err != nil {
			return 0, err
		}
		for _, s := range events {
			prefix := store.JournalPrefix(s.Run, s.Stage, journalOf(s), s.Name, s.Ordinal, s.Slice)
			if journals[prefix] == nil {
				if journals[prefix], err = f.finals(ctx, prefix); err != nil {
					return 0, err
				}
			}
			if final, ok := journals[prefix][fmt.Sprintf("final/%d", s.Sample)]; ok && began.After(final) {
				count++
			}
		}
	}
	return count, nil
}

func journalOf(s store.Sampled) store.Kind {
	switch s.Purpose {
	case "eval":
		return store.Evals
	case "filter":
		return store.Filter
	}
	return store.Rollouts
}

// written is when an object became durable.
func (f *folder) written(key string) (time.Time, error) {
	st, err := os.Stat(filepath.Join(f.root, filepath.FromSlash(key)))
	if err != nil {
		return time.Time{}, err
	}
	return st.ModTime(), nil
}

// sampled reads the sampling events of one audit segment.
func (f *folder) sampled(key string) ([]store.Sampled, error) {
	body, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(key)))
	if err != nil {
		return nil, err
	}
	var out []store.Sampled
	for dec := json.NewDecoder(bytes.NewReader(body)); dec.More(); {
		var e store.Event
		if err := dec.Decode(&e); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if e.Sampled != nil {
			out = append(out, *e.Sampled)
		}
	}
	return out, nil
}

// finals tells when each final record of a journal became durable.
func (f *folder) finals(ctx context.Context, prefix string) (map[string]time.Time, error) {
	entries, err := f.List(ctx, prefix+"/")
	if err != nil {
		return nil, err
	}
	out := map[string]time.Time{}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(e.Key)))
		if err != nil {
			return nil, err
		}
		at, err := f.written(e.Key)
		if err != nil {
			return nil, err
		}
		for dec := json.NewDecoder(bytes.NewReader(body)); dec.More(); {
			var r store.Record
			if err := dec.Decode(&r); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Key, err)
			}
			out[r.Key] = at
		}
	}
	return out, nil
}
