// Package store is the durable memory of a run: the object store contract with
// an S3 and an in-memory implementation, and what is built on it — keys,
// journals, checkpoints, published weights and the audit log.
//
// Invariants:
//   - journals, batches, checkpoints, weights and audit segments are immutable:
//     written with If-None-Match, the first write wins, and a loser loads the
//     winner's content;
//   - a nil error from a write means that the content is durable;
//   - every call has a deadline, outlives a short outage of the store, and says
//     whom it waited for when it gives up;
//   - reads are strict: what is listed must be present and hash as recorded;
//   - no key is a prefix folder of another (keys.go).
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// ETag names one version of an object's content, opaque to callers. It is what
// PutOptions.IfMatch compares.
type ETag string

// Errors that callers act on; test with errors.Is.
var (
	// ErrNotFound: the key holds no object.
	ErrNotFound = errors.New("object not found")
	// ErrExists: IfNoneMatch was asked and the key holds an object.
	ErrExists = errors.New("object exists already")
	// ErrChanged: IfMatch was asked and the object is another version or gone.
	ErrChanged = errors.New("object changed since it was read")
	// ErrNoSpace: the store has no room; retrying without freeing some is useless.
	ErrNoSpace = errors.New("no space left in the object store")
	// ErrCorrupt: stored content does not hash, parse or add up as recorded.
	ErrCorrupt = errors.New("stored content is corrupt")
)

// PutOptions are the precondition of a Put: none, or one of the two.
type PutOptions struct {
	IfNoneMatch bool // the key must hold no object (S3 If-None-Match: *)
	IfMatch     ETag // the key must hold this version (S3 If-Match)
}

// Entry is one object of a listing. Size is in bytes.
type Entry struct {
	Key  string
	Size int64
	ETag ETag
}

// Store is the object store contract. Reads see every write that returned
// before them; implementations are safe for concurrent use.
type Store interface {
	// Get returns an object's whole content. ErrNotFound when there is none.
	Get(ctx context.Context, key string) ([]byte, ETag, error)
	// Put writes an object whole or not at all and returns its version.
	// ErrExists or ErrChanged when the precondition fails.
	Put(ctx context.Context, key string, body []byte, opt PutOptions) (ETag, error)
	// List returns every object whose key begins with prefix, by ascending key.
	List(ctx context.Context, prefix string) ([]Entry, error)
	// Delete removes an object; removing none is no error.
	Delete(ctx context.Context, key string) error
}

func (o PutOptions) check(key string) error {
	if o.IfNoneMatch && o.IfMatch != "" {
		return fmt.Errorf("put %s: both IfNoneMatch and IfMatch %q are set, want at most one", key, o.IfMatch)
	}
	return nil
}

// PutOnce writes body under key unless somebody did before. winner is the
// content that the key holds afterwards; won tells whether this call wrote it.
func PutOnce(ctx context.Context, s Store, key string, body []byte) (winner []byte, won bool, err error) {
	_, err = s.Put(ctx, key, body, PutOptions{IfNoneMatch: true})
	if err == nil {
		return body, true, nil
	}
	if !errors.Is(err, ErrExists) {
		return nil, false, err
	}
	winner, _, err = s.Get(ctx, key)
	return winner, false, err
}

// PutSame writes body under key, and accepts an object that is already there
// only when it is the same to the byte: the write of a deterministic result,
// which a replay compares rather than replaces. ErrCorrupt when they differ.
func PutSame(ctx context.Context, s Store, key string, body []byte) error {
	winner, won, err := PutOnce(ctx, s, key, body)
	if err != nil || won || bytes.Equal(winner, body) {
		return err
	}
	return fmt.Errorf("%s: %w: replay gives other content (%d bytes) than was stored (%d bytes)", key, ErrCorrupt, len(body), len(winner))
}
