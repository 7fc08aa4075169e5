package engine

import (
	"context"
	"reflect"

	"github.com/restar-rl/restar/workers/model"
)

// runner is what the scheduler needs of a model with its KV cache.
type runner interface {
	// extend computes the KV of the spans' ids and draws the id that follows every span that wants one. There is one choice for each of
	// these, in order; the draws are appended to out.
	extend(ctx context.Context, spans []model.Span, choices []model.Choice, top int, out []model.Draw) ([]model.Draw, error)
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
	return &modelRunner{m: m, ws: model.NewWorkspace(), cache: model.NewKVCache(m.Config, blocks, model.WithPrecision(m.Precision()))}
}

// with returns a runner of another model, in the same memory if the shapes agree. What the cache holds is then meaningless.
func (r *modelRunner) with(m *model.Model, blocks int) *modelRunner {
	if !reflect.DeepEqual(r.m.Config, m.Config) || r.m.Precision() != m.Precision() {
		return newModelRunner(m, blocks)
	}
	return &modelRunner{m: m, ws: r.ws, cache: r.cache}
}

func (r *modelRunner) extend(ctx context.Context, spans []model.Span, choices []model.Choice, top int, out []model.Draw) ([]model.Draw, error) {
	return r.m.Sample(ctx, r.ws, spans, r.cache, choices, top, out)
}

func (r *modelRunner) copyBlock(dst, src int) { r.cache.CopyBlock(dst, src) }
func (r *modelRunner) vocab() int             { return r.m.Config.VocabSize }
func (r *modelRunner) positions() int         { return r.m.Config.MaxPosition }
