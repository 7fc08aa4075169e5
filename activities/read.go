package activities

import (
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
	if err := json.Unmarshal(body, &v); err != nil {
		return v, fmt.Errorf("%s: %w", key, err)
	}
	return v, nil
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
	return held, json.Unmarshal(winner, &held)
}

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }
