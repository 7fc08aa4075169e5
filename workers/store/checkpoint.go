package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Checkpoint is a complete checkpoint: its manifest stands and every object it
// lists is there.
type Checkpoint struct {
	Step int64 // applied optimizer step
	Manifest
}

// metaStep is the manifest's own record of the step, against misplaced folders.
const metaStep = "step"

func checkpointFolder(prefix string, step int64) string {
	return fmt.Sprintf("%s%08d", prefix, step)
}

// WriteCheckpoint makes the checkpoint of a step under prefix (a
// CheckpointsPrefix). The first writer wins; the returned manifest is the
// winner's and won tells whose it is. meta may not hold "step".
func WriteCheckpoint(ctx context.Context, s Store, prefix string, step int64, blobs []Blob, meta map[string]string) (c Checkpoint, won bool, err error) {
	if step < 0 {
		return c, false, fmt.Errorf("checkpoint step %d, want 0 or more", step)
	}
	if _, taken := meta[metaStep]; taken {
		return c, false, fmt.Errorf("checkpoint meta holds %q, which this package writes", metaStep)
	}
	full := map[string]string{metaStep: strconv.FormatInt(step, 10)}
	for k, v := range meta {
		full[k] = v
	}
	m, won, err := writeBundle(ctx, s, checkpointFolder(prefix, step), blobs, full)
	return Checkpoint{Step: step, Manifest: m}, won, err
}

// ReadCheckpoint fetches a checkpoint whole. Every listed object must be there
// and hash as recorded: ErrCorrupt otherwise, ErrNotFound without a manifest.
func ReadCheckpoint(ctx context.Context, s Store, prefix string, step int64) (Checkpoint, []Blob, error) {
	m, blobs, err := readBundle(ctx, s, checkpointFolder(prefix, step))
	if err == nil {
		err = checkStep(m, prefix, step)
	}
	return Checkpoint{Step: step, Manifest: m}, blobs, err
}

func checkStep(m Manifest, prefix string, step int64) error {
	if got := m.Meta[metaStep]; got != strconv.FormatInt(step, 10) {
		return fmt.Errorf("%s: %w: manifest is of step %q, want %d", manifestKey(checkpointFolder(prefix, step)), ErrCorrupt, got, step)
	}
	return nil
}

// Checkpoints returns the complete checkpoints under prefix, oldest first.
// Partial ones (no manifest yet, or objects gone) are passed over.
func Checkpoints(ctx context.Context, s Store, prefix string) ([]Checkpoint, error) {
	folders, err := listBundles(ctx, s, prefix)
	if err != nil {
		return nil, err
	}
	var out []Checkpoint
	for _, f := range folders {
		step, err := strconv.ParseInt(f.name, 10, 64)
		if err != nil || checkpointFolder(prefix, step) != prefix+f.name {
			return nil, fmt.Errorf("%s%s: %w: the folder's name is no step", prefix, f.name, ErrCorrupt)
		}
		if !f.manifest {
			continue
		}
		m, err := readManifest(ctx, s, prefix+f.name)
		switch {
		case errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt):
			continue
		case err != nil:
			return nil, err
		case f.missing(m) == "" && checkStep(m, prefix, step) == nil:
			out = append(out, Checkpoint{Step: step, Manifest: m})
		}
	}
	slices.SortFunc(out, func(a, b Checkpoint) int { return int(a.Step - b.Step) })
	return out, nil
}

// Latest returns the newest complete checkpoint under prefix; ok is false when
// there is none.
func Latest(ctx context.Context, s Store, prefix string) (c Checkpoint, ok bool, err error) {
	all, err := Checkpoints(ctx, s, prefix)
	if err != nil || len(all) == 0 {
		return Checkpoint{}, false, err
	}
	return all[len(all)-1], true, nil
}

// LoadLatest fetches the newest checkpoint that is complete and hashes as
// recorded, passing over damaged ones, which it returns in skipped so that the
// caller can report them. ok is false when none is left.
func LoadLatest(ctx context.Context, s Store, prefix string) (c Checkpoint, blobs []Blob, skipped []error, ok bool, err error) {
	all, err := Checkpoints(ctx, s, prefix)
	if err != nil {
		return c, nil, nil, false, err
	}
	for _, candidate := range slices.Backward(all) {
		c, blobs, err = ReadCheckpoint(ctx, s, prefix, candidate.Step)
		if err == nil {
			return c, blobs, skipped, true, nil
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNotFound) {
			return c, nil, skipped, false, err
		}
		skipped = append(skipped, err)
	}
	return Checkpoint{}, nil, skipped, false, nil
}

// PruneCheckpoints deletes all but the newest keep complete checkpoints and
// returns the steps it deleted. The newest checkpoint that reads back whole is
// never deleted, however many damaged newer ones there are.
func PruneCheckpoints(ctx context.Context, s Store, prefix string, keep int) ([]int64, error) {
	if keep < 1 {
		return nil, fmt.Errorf("keep %d checkpoints, want at least 1", keep)
	}
	all, err := Checkpoints(ctx, s, prefix)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if err := sweep(ctx, s, prefix, checkpointFolder("", all[0].Step)); err != nil || len(all) <= keep {
		return nil, err
	}
	verified, _, _, ok, err := LoadLatest(ctx, s, prefix)
	if err != nil || !ok {
		return nil, err
	}
	var deleted []int64
	for _, c := range all[:len(all)-keep] {
		if c.Step == verified.Step {
			continue
		}
		if err := deleteBundle(ctx, s, checkpointFolder(prefix, c.Step)); err != nil {
			return deleted, err
		}
		deleted = append(deleted, c.Step)
	}
	return deleted, nil
}
