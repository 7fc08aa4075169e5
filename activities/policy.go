package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

// Policies reads published weights of runs, in the precision of each run's recipe.
type Policies struct {
	Runs  *Runs
	Store store.Store
}

// ErrMissingWeights is the failure of work whose weights are not published any more; a trainer can publish them again.
const ErrMissingWeights = "MissingWeights"

// errUnpublished is ErrMissingWeights before it reaches a workflow.
var errUnpublished = errors.New("weights are not published")

// Load returns a model with published weights, checked against their digest.
func (p *Policies) Load(ctx context.Context, run string, w Weights) (*model.Model, error) {
	m, err := emptyModel(ctx, p.Runs, run)
	if err != nil {
		return nil, err
	}
	_, blobs, err := store.ReadWeights(ctx, p.Store, run, w.Stage, w.Version)
	if isNotFound(err) {
		return nil, fmt.Errorf("%w: %w", errUnpublished, err)
	}
	if err != nil {
		return nil, err
	}
	if len(blobs) != 1 {
		return nil, fmt.Errorf("weights %s: %w: %d objects, want 1", w.Version, store.ErrCorrupt, len(blobs))
	}
	tensors, _, err := model.DecodeSafetensors(blobs[0].Data)
	if err != nil {
		return nil, fmt.Errorf("weights %s: %w", w.Version, err)
	}
	if err := m.SetTensors(tensors); err != nil {
		return nil, fmt.Errorf("weights %s: %w", w.Version, err)
	}
	if got := train.NewState(m).WeightsDigest(); got != w.Digest {
		return nil, fmt.Errorf("weights %s: %w: digest %s, want %s", w.Version, store.ErrCorrupt, got, w.Digest)
	}
	return m, nil
}

// publish makes weights readable by samplers, and drops all but the last two versions of the stage.
func (t *Trainer) publish(ctx context.Context, run string, w Weights, m *model.Model) error {
	if err := t.put(ctx, run, w, m); err != nil {
		return err
	}
	rec, err := t.Runs.Recipe(ctx, run)
	if err != nil {
		return err
	}
	_, err = store.PruneWeights(ctx, t.Store, run, w.Stage, referencesOf(rec, w.Stage))
	return err
}

// put makes weights readable by samplers. Weights of that name that are there already must be the same.
func (t *Trainer) put(ctx context.Context, run string, w Weights, m *model.Model) error {
	body, err := model.EncodeSafetensors(m.Tensors(), nil)
	if err != nil {
		return err
	}
	blobs := []store.Blob{{Name: model.WeightsFile, Data: body}}
	held, won, err := store.PublishWeights(ctx, t.Store, run, w.Stage, w.Version, blobs, map[string]string{"digest": w.Digest})
	if err != nil {
		return err
	}
	if !won && held.Meta["digest"] != w.Digest {
		return numericsError("weights "+w.Version+" as "+w.Digest, "those published as "+held.Meta["digest"])
	}
	return nil
}

// skeleton is a model of the run's shape whose weights are about to be replaced.
func (t *Trainer) skeleton(ctx context.Context, run string) (*model.Model, error) {
	return emptyModel(ctx, t.Runs, run)
}

func emptyModel(ctx context.Context, runs *Runs, run string) (*model.Model, error) {
	rec, err := runs.Recipe(ctx, run)
	if err != nil {
		return nil, err
	}
	cfg, err := runs.config(ctx, run)
	if err != nil {
		return nil, err
	}
	return model.Blank(cfg, model.WithPrecision(precision(rec)))
}

// files reads every file of a folder.
func files(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// missing turns an absent version into the failure that a workflow mends by asking the trainer for it.
func missing(err error) error {
	if errors.Is(err, errUnpublished) {
		return applicationError(ErrMissingWeights, err)
	}
	return err
}
