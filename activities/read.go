package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/restar-rl/restar/workers/store"
)

// readJSON reads one JSON object of the store.
func readJSON[T any](ctx context.Context, s store.Store, key string) (T, error) {
	var v T
	body, _, err := s.Get(ctx, key)
	if err != nil {
		return v, err
	}
	if err := decodeStrict(body, &v); err != nil {
		return v, fmt.Errorf("%s: %w", key, err)
	}
	return v, nil
}

// decodeStrict reads one JSON value. An unknown key is an error: it was written by another version, and means something.
func decodeStrict(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// putJSONOnce writes a value unless its key is taken, and returns what the key holds.
func putJSONOnce[T any](ctx context.Context, s store.Store, key string, v T) (T, error) {
	body, err := encodeIndented(v)
	if err != nil {
		return v, fmt.Errorf("%s: %w", key, err)
	}
	winner, won, err := store.PutOnce(ctx, s, key, body)
	if err != nil || won {
		return v, err
	}
	var held T
	return held, decodeStrict(winner, &held)
}

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }
