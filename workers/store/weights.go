package store

import (
	"context"
	"fmt"
	"slices"
)

// keptWeights is how many versions of a stage's weights stay published: the
// one that samplers use and the one that a straggler may still ask for.
const keptWeights = 2

// PublishWeights makes a version of a stage's policy weights readable by
// samplers. The first writer wins: a later call with the same version returns
// the manifest that stands.
func PublishWeights(ctx context.Context, s Store, run, stage, version string, blobs []Blob, meta map[string]string) (m Manifest, won bool, err error) {
	if version == "" {
		return m, false, fmt.Errorf("publish weights of run %s, stage %s: version is empty", run, stage)
	}
	return writeBundle(ctx, s, weightsFolder(run, stage, version), blobs, meta)
}

// ReadWeights fetches a published version whole; ErrNotFound when it is not (or
// no longer) published, ErrCorrupt when it does not hash as recorded.
func ReadWeights(ctx context.Context, s Store, run, stage, version string) (Manifest, []Blob, error) {
	return readBundle(ctx, s, weightsFolder(run, stage, version))
}

// WeightsManifest returns the manifest of a published version without fetching
// its data; ErrNotFound when the version is not (or no longer) published.
func WeightsManifest(ctx context.Context, s Store, run, stage, version string) (Manifest, error) {
	return readManifest(ctx, s, weightsFolder(run, stage, version))
}

// PruneWeights deletes all but the last two published versions of a stage, in
// ascending order of version, which must therefore sort as they are made
// (numbers padded), and those that keep wants beside them; keep may be nil. It
// returns the path segments of what it deleted.
func PruneWeights(ctx context.Context, s Store, run, stage string, keep func(version, newest string) bool) ([]string, error) {
	prefix := WeightsPrefix(run, stage)
	folders, err := listBundles(ctx, s, prefix)
	if err != nil {
		return nil, err
	}
	published, newest := 0, ""
	for _, f := range folders {
		if f.manifest {
			published++
			newest = f.name
		}
	}
	kept := func(f bundleState) bool { return f.manifest && keep != nil && keep(f.name, newest) }
	folders = slices.DeleteFunc(folders, func(f bundleState) bool {
		if kept(f) && f.name != newest {
			published--
			return true
		}
		return false
	})
	var deleted []string
	for _, f := range folders {
		if published == 0 || published <= keptWeights && f.manifest {
			break // a folder without manifest before these is what an interrupted deletion left
		}
		if err := deleteBundle(ctx, s, prefix+f.name); err != nil {
			return deleted, err
		}
		if f.manifest {
			published--
		}
		deleted = append(deleted, f.name)
	}
	return deleted, nil
}

func weightsFolder(run, stage, version string) string {
	return WeightsPrefix(run, stage) + segment(version)
}
