package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/restar-rl/restar/workers/store"
)

// lease says who trains a stage. A process that takes it over raises the epoch; whoever holds an older one must reload.
type lease struct {
	Epoch int64  `json:"epoch"`
	Owner string `json:"owner"`
}

// errStaleEpoch tells a trainer that another process has taken over since it loaded its state.
var errStaleEpoch = errors.New("training lease was taken over")

func leaseKey(run, stage string) string { return store.ArtifactKey(run, stage, "lease.json") }

// lease takes the stage over and returns the new epoch.
func (t *Trainer) lease(ctx context.Context, run, stage string) (int64, error) {
	for {
		held, etag, err := t.readLease(ctx, run, stage)
		if err != nil {
			return 0, err
		}
		next := lease{Epoch: held.Epoch + 1, Owner: t.Owner}
		body, err := json.Marshal(next)
		if err != nil {
			return 0, err
		}
		opt := store.PutOptions{IfMatch: etag, IfNoneMatch: etag == ""}
		_, err = t.Store.Put(ctx, leaseKey(run, stage), body, opt)
		if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrExists) {
			continue // another process was faster: take it over from that one
		}
		return next.Epoch, err
	}
}

// fence returns errStaleEpoch unless epoch is still the stage's newest.
func (t *Trainer) fence(ctx context.Context, run, stage string, epoch int64) error {
	held, _, err := t.readLease(ctx, run, stage)
	if err == nil && held.Epoch != epoch {
		return fmt.Errorf("%w: epoch %d by %s, this process (%s) holds %d", errStaleEpoch, held.Epoch, held.Owner, t.Owner, epoch)
	}
	return err
}

func (t *Trainer) readLease(ctx context.Context, run, stage string) (lease, store.ETag, error) {
	var l lease
	body, etag, err := t.Store.Get(ctx, leaseKey(run, stage))
	if errors.Is(err, store.ErrNotFound) {
		return l, "", nil
	}
	if err != nil {
		return l, "", err
	}
	return l, etag, decodeStrict(body, &l)
}
