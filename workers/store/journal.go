package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// flushEvery is how long a record may wait for company before it is written.
	flushEvery = 500 * time.Millisecond
	// backgroundFlushTimeout bounds a flush that no caller waits for; the records
	// stay buffered when it fails.
	backgroundFlushTimeout = 2 * time.Minute
	// readAhead is how many segments are fetched at a time.
	readAhead = 8
)

// ErrSuperseded tells that another attempt wrote the journal's next segment. This attempt
// must reopen the journal and go on from what the winner recorded.
var ErrSuperseded = errors.New("journal is continued by another attempt")

// Record is one entry of a journal: an opaque JSON value under a key that the
// caller chooses (not necessarily unique). White space between the value's
// tokens is not kept; everything else is, number spelling included.
type Record struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Journal appends records to a list of immutable segments PREFIX/000000,
// PREFIX/000001, ... Two attempts may hold the same journal; the first to write
// a segment owns it and the other one gets ErrSuperseded. Safe for concurrent use.
type Journal struct {
	store  Store
	prefix string
	every  time.Duration

	mu      sync.Mutex // guards pending, timer, dead
	pending []Record
	timer   *time.Timer
	dead    error // ErrSuperseded or closed: nothing more will be written

	writing chan struct{} // holds a token while a segment is being written
	next    int           // sequence number of the next segment; owned by the token's holder
}

// OpenJournal opens the journal under prefix and returns its records in order.
func OpenJournal(ctx context.Context, s Store, prefix string) (*Journal, []Record, error) {
	records, next, err := readSegments(ctx, s, prefix)
	if err != nil {
		return nil, nil, err
	}
	return &Journal{store: s, prefix: prefix, every: flushEvery, next: next, writing: make(chan struct{}, 1)}, records, nil
}

// ReadJournal returns the records under prefix in order; none when there is no
// journal.
func ReadJournal(ctx context.Context, s Store, prefix string) ([]Record, error) {
	records, _, err := readSegments(ctx, s, prefix)
	return records, err
}

// Append takes a record; it is durable after the next successful Flush, or by
// itself within about half a second. The error is that of a journal that takes
// no more (ErrSuperseded, closed).
func (j *Journal) Append(r Record) error {
	if !json.Valid(r.Value) {
		return fmt.Errorf("journal %s: record %q is not JSON: %.80q", j.prefix, r.Key, r.Value)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dead != nil {
		return j.dead
	}
	j.pending = append(j.pending, Record{Key: r.Key, Value: bytes.Clone(r.Value)})
	j.schedule()
	return nil
}

// Flush returns when every record appended before it is durable.
func (j *Journal) Flush(ctx context.Context) error {
	select {
	case j.writing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("journal %s: waiting for another flush: %w", j.prefix, context.Cause(ctx))
	}
	defer func() { <-j.writing }()
	batch, err := j.take()
	if err != nil || len(batch) == 0 {
		return err
	}
	if err := j.write(ctx, batch); err != nil {
		return j.keep(batch, err)
	}
	j.next++
	return nil
}

// Close flushes and ends the journal. Without Close, up to half a second of
// records may be lost, as by a crash.
func (j *Journal) Close(ctx context.Context) error {
	err := j.Flush(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer != nil {
		j.timer.Stop()
	}
	if j.dead == nil {
		j.dead = fmt.Errorf("journal %s is closed", j.prefix)
	}
	if errors.Is(err, ErrSuperseded) || len(j.pending) == 0 {
		return err
	}
	return errors.Join(err, fmt.Errorf("journal %s: %d records are not durable", j.prefix, len(j.pending)))
}

// schedule starts the background flush; j.mu is held.
func (j *Journal) schedule() {
	if j.timer == nil {
		j.timer = time.AfterFunc(j.every, j.background)
	}
}

func (j *Journal) background() {
	ctx, cancel := context.WithTimeout(context.Background(), backgroundFlushTimeout)
	defer cancel()
	// An error keeps the records and the next flush tries again; a superseded
	// journal tells every later Append and Flush.
	_ = j.Flush(ctx)
}

func (j *Journal) take() ([]Record, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	if j.dead != nil && len(j.pending) == 0 {
		if errors.Is(j.dead, ErrSuperseded) {
			return nil, j.dead
		}
		return nil, nil
	}
	batch := j.pending
	j.pending = nil
	return batch, nil
}

func (j *Journal) write(ctx context.Context, batch []Record) error {
	body, err := encodeSegment(batch)
	if err != nil {
		return err
	}
	_, err = j.store.Put(ctx, segmentKey(j.prefix, j.next), body, PutOptions{IfNoneMatch: true})
	return err
}

// keep puts a batch back after a failed write, or ends a superseded journal.
func (j *Journal) keep(batch []Record, err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(err, ErrExists) {
		j.pending = nil
		j.dead = fmt.Errorf("journal %s, segment %d: %w", j.prefix, j.next, ErrSuperseded)
		return j.dead
	}
	j.pending = append(batch, j.pending...)
	if j.dead == nil {
		j.schedule()
	}
	return err
}

func segmentKey(prefix string, seq int) string { return prefix + "/" + number(seq) }

// encodeSegment is one JSON record a line.
func encodeSegment(batch []Record) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range batch {
		if err := enc.Encode(r); err != nil {
			return nil, fmt.Errorf("encode journal record %q: %w", r.Key, err)
		}
	}
	return b.Bytes(), nil
}

func decodeSegment(key string, body []byte) ([]Record, error) {
	var out []Record
	for i, line := range strings.SplitAfter(string(body), "\n") {
		if line == "" {
			continue
		}
		var r Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || !strings.HasSuffix(line, "\n") {
			return nil, fmt.Errorf("journal segment %s, line %d: %w: want one whole JSON record a line, have %.80q", key, i+1, ErrCorrupt, line)
		}
		out = append(out, r)
	}
	return out, nil
}

// readSegments lists and fetches the segments under prefix; they must be
// numbered from 0 without a gap.
func readSegments(ctx context.Context, s Store, prefix string) ([]Record, int, error) {
	entries, err := s.List(ctx, prefix+"/")
	if err != nil {
		return nil, 0, err
	}
	parts := make([][]Record, len(entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readAhead)
	for i, e := range entries {
		if want := segmentKey(prefix, i); e.Key != want {
			return nil, 0, errors.Join(g.Wait(), fmt.Errorf("journal %s: %w: have segment %s, want %s", prefix, ErrCorrupt, e.Key, want))
		}
		g.Go(func() error {
			body, _, err := s.Get(ctx, e.Key)
			if err == nil {
				parts[i], err = decodeSegment(e.Key, body)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, 0, err
	}
	var out []Record
	for _, p := range parts {
		out = append(out, p...)
	}
	return out, len(entries), nil
}
