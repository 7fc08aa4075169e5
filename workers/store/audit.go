package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// Event is one line of the audit log: exactly one of the two is set. The log
// is what makes "nothing is done twice" countable, so it is append-only and
// records what happened, not what should have.
type Event struct {
	Sampled *Sampled `json:"sampled,omitempty"`
	Applied *Applied `json:"applied,omitempty"`
}

// Sampled records that one trajectory was generated.
type Sampled struct {
	Run       string `json:"run"`
	Stage     string `json:"stage"`
	Purpose   string `json:"purpose"`             // rollout, eval, filter
	Iteration int    `json:"iteration,omitempty"` // of a rollout
	Name      string `json:"name,omitempty"`      // of an evaluation or filter
	Ordinal   int    `json:"ordinal"`
	Slice     int    `json:"slice"`
	Sample    int    `json:"sample"`
	// FinalExisted: the trajectory's final journal record was durable when the
	// attempt that generated it began.
	FinalExisted bool `json:"final_existed"`
	Attempt      int  `json:"attempt"` // of the activity, from 1
}

// Applied records that one optimizer step was applied to a state.
type Applied struct {
	Run   string `json:"run"`
	Stage string `json:"stage"`
	Step  int64  `json:"step"`
	// InputAppliedStep is the applied step that the input state already held.
	InputAppliedStep int64 `json:"input_applied_step"`
	// Replay: the step had been applied before, to a state that was lost.
	Replay bool `json:"replay"`
}

// Counts is what an audit log adds up to.
type Counts struct {
	Sampled  int `json:"sampled"`
	Applied  int `json:"applied"` // replays included
	Replayed int `json:"replayed"`
	// StepsAppliedTwice counts applications whose input state already had
	// applied step >= step. Must be 0.
	StepsAppliedTwice int `json:"steps_applied_twice"`
	// TrajectoriesRegenerated counts trajectories sampled although their final
	// record existed when the attempt began. Must be 0.
	TrajectoriesRegenerated int `json:"trajectories_regenerated"`
}

// AppendAudit writes events of one run as one immutable segment. When it
// returns nil they are durable.
func AppendAudit(ctx context.Context, s Store, run string, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	body, err := encodeEvents(events)
	if err != nil {
		return fmt.Errorf("audit of run %s: %w", run, err)
	}
	key := fmt.Sprintf("%s%020d-%s", AuditPrefix(run), time.Now().UnixNano(), uuid.NewString())
	_, err = s.Put(ctx, key, body, PutOptions{IfNoneMatch: true})
	return err
}

func encodeEvents(events []Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i, e := range events {
		if (e.Sampled == nil) == (e.Applied == nil) {
			return nil, fmt.Errorf("event %d has Sampled %v and Applied %v, want exactly one", i, e.Sampled, e.Applied)
		}
		if err := enc.Encode(e); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return b.Bytes(), nil
}

// ReadAudit returns a run's events, segments in order of writing.
func ReadAudit(ctx context.Context, s Store, run string) ([]Event, error) {
	entries, err := s.List(ctx, AuditPrefix(run))
	if err != nil {
		return nil, err
	}
	parts := make([][]Event, len(entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readAhead)
	for i, e := range entries {
		g.Go(func() error {
			body, _, err := s.Get(ctx, e.Key)
			if err == nil {
				parts[i], err = decodeEvents(e.Key, body)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []Event
	for _, p := range parts {
		out = append(out, p...)
	}
	return out, nil
}

func decodeEvents(key string, body []byte) ([]Event, error) {
	var out []Event
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	for dec.More() {
		var e Event
		if err := dec.Decode(&e); err != nil {
			return nil, fmt.Errorf("audit segment %s, event %d: %w: %v", key, len(out), ErrCorrupt, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// CountAudit adds up an audit log. It is pure.
func CountAudit(events []Event) Counts {
	var c Counts
	for _, e := range events {
		if s := e.Sampled; s != nil {
			c.Sampled++
			if s.FinalExisted {
				c.TrajectoriesRegenerated++
			}
		}
		if a := e.Applied; a != nil {
			c.Applied++
			if a.Replay {
				c.Replayed++
			}
			if a.InputAppliedStep >= a.Step {
				c.StepsAppliedTwice++
			}
		}
	}
	return c
}
