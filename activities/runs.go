package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// Runs reads from the store what a run was asked to do and which files it works with, once a process. Everything it holds
// is immutable in the store, so a cached value is never stale.
type Runs struct {
	Store      store.Store
	NumericsOf func(model.Precision) string // of this worker: the bits that it computes in a precision

	mu    sync.Mutex
	cache map[string]any // by store key
}

// Recipe returns a run's resolved recipe, and refuses a run whose bits this worker cannot make.
func (r *Runs) Recipe(ctx context.Context, run string) (Recipe, error) {
	rec, err := cached(ctx, r, store.RecipeKey(run), func(b []byte) (Recipe, error) {
		var rec Recipe
		return rec, decodeStrict(b, &rec)
	})
	if err != nil {
		return rec, err
	}
	if mine := r.NumericsOf(precision(rec)); rec.NumericsID != mine {
		return rec, numericsError(mine, rec.NumericsID)
	}
	return rec, err
}

// RecipeDigest is that of a run's resolved recipe as the store holds it: the same for every version of restar that reads it.
func (r *Runs) RecipeDigest(ctx context.Context, run string) (string, error) {
	body, _, err := r.Store.Get(ctx, store.RecipeKey(run))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", store.RecipeKey(run), err)
	}
	return digest(body), nil
}

// precision is the one that a recipe names.
func precision(rec Recipe) model.Precision { return model.Precision(rec.Precision) }

// Problems returns a curated set, checked against its digest.
func (r *Runs) Problems(ctx context.Context, d Dataset) ([]problem.Problem, error) {
	set, err := cached(ctx, r, d.Key, func(b []byte) ([]problem.Problem, error) {
		if got := digest(b); got != d.Digest {
			return nil, fmt.Errorf("dataset %s has digest %s, want %s", d.Key, got, d.Digest)
		}
		return decodeLines[problem.Problem](b)
	})
	if err == nil && len(set) != d.Problems {
		return nil, fmt.Errorf("dataset %s holds %d problems, want %d", d.Key, len(set), d.Problems)
	}
	return set, err
}

// Demos returns the run's demonstrations, checked against their digest.
func (r *Runs) Demos(ctx context.Context, d Dataset) ([]problem.Demo, error) {
	return cached(ctx, r, d.Key, func(b []byte) ([]problem.Demo, error) {
		if got := digest(b); got != d.Digest {
			return nil, fmt.Errorf("demonstrations %s have digest %s, want %s", d.Key, got, d.Digest)
		}
		return decodeLines[problem.Demo](b)
	})
}

// Tokenizer returns the run's tokenizer.
func (r *Runs) Tokenizer(ctx context.Context, run string) (*tokenizer.Tokenizer, error) {
	files := map[string][]byte{}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		body, _, err := r.Store.Get(ctx, modelKey(run, name))
		if errors.Is(err, store.ErrNotFound) && name != "tokenizer.json" {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = body
	}
	return cached(ctx, r, modelKey(run, "tokenizer.json"), func([]byte) (*tokenizer.Tokenizer, error) {
		return tokenizer.FromFiles(files)
	})
}

// config is the configuration of the run's model.
func (r *Runs) config(ctx context.Context, run string) (model.Config, error) {
	body, _, err := r.Store.Get(ctx, modelKey(run, model.ConfigFile))
	if err != nil {
		return model.Config{}, err
	}
	return model.ParseConfig(body)
}

// Ends are the ids that the run's model folder calls the end of a sequence.
func (r *Runs) Ends(ctx context.Context, run string) ([]int32, error) {
	c, err := r.config(ctx, run)
	if err != nil {
		return nil, err
	}
	generation, _, err := r.Store.Get(ctx, modelKey(run, model.GenerationFile))
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	ends, err := c.Ends(generation)
	return ends, InputError(err)
}

// modelKey holds a file of the run's model folder that no training changes: its configuration and tokenizer.
func modelKey(run, name string) string { return store.ArtifactKey(run, exportStage, name) }

// InputKey holds a file that the user gave to the run.
func InputKey(run, name string) string { return store.ArtifactKey(run, "inputs", name) }

// Template returns the conversation format that a recipe asks for.
func Template(rec Recipe) tokenizer.Template {
	return tokenizer.Template{System: rec.Agent.System, Tools: []tokenizer.Tool{tokenizer.ToolNamed(rec.Agent.Tool)}}
}

// cached reads and decodes an immutable object once a process.
func cached[T any](ctx context.Context, r *Runs, key string, decode func([]byte) (T, error)) (T, error) {
	r.mu.Lock()
	v, ok := r.cache[key]
	r.mu.Unlock()
	if ok {
		return v.(T), nil
	}
	var out T
	body, _, err := r.Store.Get(ctx, key)
	if err != nil {
		return out, fmt.Errorf("read %s: %w", key, err)
	}
	if out, err = decode(body); err != nil {
		return out, fmt.Errorf("decode %s: %w", key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cache == nil {
		r.cache = map[string]any{}
	}
	r.cache[key] = out
	return out, nil
}

// promptOrder is the order in which a stage's prompts are drawn: one permutation of the set an epoch.
type promptOrder struct {
	key   philox.Key
	stage int
	apart int // tells further orders of the stage from that of its prompts, which is 0
	n     int

	mu    sync.Mutex
	epoch int
	perm  []int
}

// index returns the problem at an ordinal of the stage.
func (o *promptOrder) index(ordinal int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if epoch := ordinal / o.n; o.perm == nil || epoch != o.epoch {
		at := philox.Address{Purpose: philox.Shuffle, Stage: o.stage, Iteration: epoch, Ordinal: o.apart}
		o.epoch, o.perm = epoch, o.key.Perm(at, o.n)
	}
	return o.perm[ordinal%o.n]
}
