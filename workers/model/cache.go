package model

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/kernels"
)

// KVCache holds blocks of BlockTokens positions of keys and values for every layer, as float32 for a model that multiplies in fp32 and as
// bfloat16 for one in bf16. Which block belongs to whom is the caller's table; two writers never share a block.
type KVCache struct {
	Blocks   int
	backend  kernels.Backend
	geometry kernels.Geometry
	dtype    kernels.DType
	views    []kernels.View // keys of layer 0, values of layer 0, keys of layer 1, ...
	err      error
}

// BlockBytes is the memory that one block of the model's cache takes over all layers.
func (m *Model) BlockBytes() int {
	size := 4
	if m.precision.Operand() == kernels.BF16 {
		size = 2
	}
	return size * 2 * m.Config.Layers * m.Config.geometry().BlockFloats()
}

// NewKVCache allocates blocks for models of a configuration and precision. A cache that cannot be made reports why at its first use.
func NewKVCache(cfg Config, blocks int, opts ...Option) *KVCache {
	b, err := host()
	if err != nil {
		return &KVCache{err: err}
	}
	return newKVCache(b, cfg, blocks, opts...)
}

func newKVCache(b kernels.Backend, cfg Config, blocks int, opts ...Option) *KVCache {
	c := &KVCache{Blocks: blocks, backend: b, geometry: cfg.geometry(), dtype: choose(opts).precision.Operand(), err: cfg.Validate()}
	if blocks < 1 && c.err == nil {
		c.err = fmt.Errorf("key-value cache of %d blocks, want 1 or more", blocks)
	}
	allocate := b.Floats
	if c.dtype == kernels.BF16 {
		allocate = b.Halves
	}
	for range 2 * cfg.Layers {
		if c.err != nil {
			return c
		}
		var v kernels.View
		v, c.err = allocate(blocks * c.geometry.BlockFloats())
		c.views = append(c.views, v)
	}
	return c
}

// layer returns the keys and values of one layer.
func (c *KVCache) layer(l int) (k, v kernels.View) { return c.views[2*l], c.views[2*l+1] }

// CopyBlock copies a block of every layer: the copy of copy-on-write. An impossible copy is reported by the next Extend.
func (c *KVCache) CopyBlock(dst, src int) {
	if c.err != nil {
		return
	}
	if min(dst, src) < 0 || max(dst, src) >= c.Blocks {
		c.err = fmt.Errorf("copy of block %d to %d in a cache of %d blocks", src, dst, c.Blocks)
		return
	}
	s, n := c.backend.NewStream(kernels.StreamOptions{Parallelism: 1}), c.geometry.BlockFloats()
	for _, v := range c.views {
		c.backend.Copy(s, v.Slice(dst*n, (dst+1)*n), v.Slice(src*n, (src+1)*n))
	}
	c.err = s.Sync(context.Background())
}

// Span is new tokens of one sequence. The cache already holds its positions before Start.
type Span struct {
	IDs    []int32
	Start  int   // absolute position of IDs[0]
	Blocks []int // Blocks[b] holds positions [64b, 64b+64); covers [0, Start+len(IDs))
	Want   bool  // logits of the last token are wanted
}

// Extend runs new tokens of many sequences through the model, writing their keys and values into the cache, and returns the logits
// that follow each wanted span, [wanted, VocabSize], in the order of spans. The result is valid until the workspace's next use.
func (m *Model) Extend(ctx context.Context, ws *Workspace, spans []Span, cache *KVCache) ([]float32, error) {
	p, logits, err := m.extend(ctx, ws, spans, cache)
	if err != nil || logits.Len == 0 {
		return nil, err
	}
	return p.download(ctx, logits)
}

// Choice says how a token is drawn.
type Choice = kernels.Choice

// Draw is a drawn token.
type Draw = kernels.Draw

// Likely is an alternative to a drawn token.
type Likely = kernels.Likely

// Sample is Extend followed by one draw for each wanted span, made where the logits are. It needs a choice for each wanted span, in the order
// of spans, and lists the top likeliest ids with each draw. Draws are appended to out.
func (m *Model) Sample(ctx context.Context, ws *Workspace, spans []Span, cache *KVCache, choices []Choice, top int, out []Draw) ([]Draw, error) {
	if ws == nil {
		ws = NewWorkspace()
	}
	p, logits, err := m.extend(ctx, ws, spans, cache)
	if err != nil || p == nil {
		return out, err
	}
	vocab, from := m.Config.VocabSize, len(out)
	if logits.Len != len(choices)*vocab {
		return out, fmt.Errorf("%d choices for %d wanted spans", len(choices), logits.Len/vocab)
	}
	out = append(out, make([]Draw, len(choices))...)
	if len(choices) > 0 {
		m.backend.Sample(p.s, kernels.SampleArgs{Rows: len(choices), Vocab: vocab, Logits: logits, Choices: choices, Top: top, Draws: out[from:]})
	}
	return out, p.sync(ctx)
}

// extend runs spans and leaves the wanted logits on the device. The pass is nil if there are no spans.
func (m *Model) extend(ctx context.Context, ws *Workspace, spans []Span, cache *KVCache) (*pass, kernels.View, error) {
	s, ids, wanted, err := m.joinSpans(spans, cache)
	if err != nil || len(spans) == 0 {
		return nil, kernels.View{}, err
	}
	p := m.pass(ws, ids, s, false)
	x, err := p.forward(ctx, cache.layer)
	if err != nil {
		return nil, kernels.View{}, err
	}
	if len(wanted) == 0 {
		return p, kernels.View{}, p.sync(ctx)
	}
	return p, p.logits(x, wanted), nil
}

// joinSpans checks spans and lays them out as rows; wanted holds the rows whose logits are wanted.
func (m *Model) joinSpans(spans []Span, cache *KVCache) (s kernels.Spans, ids, wanted []int32, err error) {
	if cache.err != nil {
		return s, nil, nil, cache.err
	}
	if cache.geometry != m.Config.geometry() || len(cache.views) != 2*m.Config.Layers {
		return s, nil, nil, fmt.Errorf("key-value cache of %d layers of %+v does not fit the model's %d of %+v",
			len(cache.views)/2, cache.geometry, m.Config.Layers, m.Config.geometry())
	}
	if t := m.precision.Operand(); cache.dtype != t {
		return s, nil, nil, fmt.Errorf("key-value cache of %s, a model in %s wants one of %s: make it WithPrecision", cache.dtype, m.precision, t)
	}
	s.Row = []int{0}
	for i, sp := range spans {
		end := sp.Start + len(sp.IDs)
		if len(sp.IDs) == 0 || sp.Start < 0 || end > m.Config.MaxPosition {
			return s, nil, nil, fmt.Errorf("span %d covers positions [%d, %d), want some below %d (max_position_embeddings)",
				i, sp.Start, end, m.Config.MaxPosition)
		}
		if len(sp.Blocks)*BlockTokens < end {
			return s, nil, nil, fmt.Errorf("span %d ends at position %d, its %d blocks hold %d", i, end, len(sp.Blocks), len(sp.Blocks)*BlockTokens)
		}
		s.Start, s.TableAt = append(s.Start, sp.Start), append(s.TableAt, len(s.Table))
		for _, b := range sp.Blocks[:(end+BlockTokens-1)/BlockTokens] {
			s.Table = append(s.Table, int32(b))
		}
		ids = append(ids, sp.IDs...)
		s.Row = append(s.Row, len(ids))
		if sp.Want {
			wanted = append(wanted, int32(len(ids)-1))
		}
	}
	return s, ids, wanted, checkIDs(ids, m.Config.VocabSize)
}

// logits gathers wanted rows of the residual stream, then norm and head as in a packed pass.
func (p *pass) logits(x kernels.View, wanted []int32) kernels.View {
	b, c, n := p.m.backend, p.m.Config, len(wanted)
	rows, at := p.f("gathered", 0, n*c.HiddenSize), p.i("wanted", n)
	b.UploadInts(p.s, at, wanted)
	b.Embedding(p.s, rows, x, at, n, c.HiddenSize)
	h := p.f("hidden", 0, n*c.HiddenSize)
	b.RMSNorm(p.s, h, p.f("rstd", 0, n), rows, p.m.weights.norm, n, c.HiddenSize, float32(c.RMSNormEps))
	logits := p.f("logits", 0, n*c.VocabSize)
	b.GemmNT(p.s, logits, h, p.m.packed.head, kernels.Shape{M: n, N: c.VocabSize, K: c.HiddenSize}, false)
	return logits
}

// download copies logits to the host and refuses those that are no distribution.
func (p *pass) download(ctx context.Context, logits kernels.View) ([]float32, error) {
	if cap(p.ws.host) < logits.Len {
		p.ws.host = make([]float32, logits.Len)
	}
	out := p.ws.host[:logits.Len]
	p.m.backend.Download(p.s, out, logits)
	if err := p.sync(ctx); err != nil {
		return nil, err
	}
	for i := 0; i < len(out); i += p.m.Config.VocabSize {
		if x := out[i]; x-x != 0 { // an overflow before the head reaches every logit of its row
			return nil, fmt.Errorf("logits of wanted span %d are %v: the weights or activations overflowed", i/p.m.Config.VocabSize, x)
		}
	}
	return out, nil
}

// SampleRow draws from a row of logits in host memory. It is the code that Sample runs.
func SampleRow(logits []float32, c Choice, top int) Draw {
	b, err := host()
	if err != nil {
		panic(err) // New and Load have refused this environment already
	}
	return b.SampleRow(logits, c, top)
}
