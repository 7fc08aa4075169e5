package engine

import (
	"context"
	"reflect"

	"github.com/restar-rl/restar/workers/model"
)

// runner is what the scheduler needs of a model with its KV cache.
type runner interface {
	// extend computes the KV of the spans' ids and returns the logits after the last id of every span that wants them, in order.
	extend(ctx context.Context, spans []model.Span) ([]float32, error)
	copyBlock(dst, src int)
	vocab() int
	positions() int // the largest context, 0 if unlimited
}

// modelRunner runs the real model.
type modelRunner struct {
	m     *model.Model
	ws    *model.Workspace
	cache *model.KVCache
}

func newModelRunner(m *model.Model, blocks int) *modelRunner {
	return &modelRunner{m: m, ws: model.NewWorkspace(), cache: model.NewKVCache(m.Config, blocks)}
}

// with returns a runner of another model, in the same memory if the shapes agree. What the cache holds is then meaningless.
func (r *modelRunner) with(m *model.Model, blocks int) *modelRunner {
	if !reflect.DeepEqual(r.m.Config, m.Config) {
		return newModelRunner(m, blocks)
	}
	return &modelRunner{m: m, ws: r.ws, cache: r.cache}
}

func (r *modelRunner) extend(ctx context.Context, spans []model.Span) ([]float32, error) {
	return r.m.Extend(ctx, r.ws, spans, r.cache)
}

func (r *modelRunner) copyBlock(dst, src int) { r.cache.CopyBlock(dst, src) }
func (r *modelRunner) vocab() int             { return r.m.Config.VocabSize }
func (r *modelRunner) positions() int         { return r.m.Config.MaxPosition }
