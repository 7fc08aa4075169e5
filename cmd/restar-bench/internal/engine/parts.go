package engine

import (
	"context"
	"fmt"
	"runtime"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/kernels"
)

// newParts answers a number of threads with the time that a training step's operations other than matrix products take, each measured
// alone and counted as often as a step cannot do without it: activations computed again, copies, roundings, packing and sums of
// gradients are left out. Attention, forward and backward, is one of them.
func newParts(s Shape) (turn, error) {
	b, err := backend()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, request string) (match.Answer, error) {
		if err := threads(request); err != nil {
			return match.Answer{}, err
		}
		x := &step{bench: newBench(b, runtime.GOMAXPROCS(0)), shape: s, seconds: map[string]float64{}}
		x.rowOps()
		x.attention()
		x.head()
		x.optimizer()
		if err := x.stream.Sync(ctx); err != nil {
			return match.Answer{}, fmt.Errorf("parts of a step of %s: %w", s.Name, err)
		}
		return match.Answer{Parts: x.seconds}, x.err
	}, nil
}

// step collects the seconds of a step's parts.
type step struct {
	*bench
	shape   Shape
	seconds map[string]float64
}

// The kinds of parts.
const (
	partRows      = "rows"      // norms, SwiGLU, rotary angles, embedding
	partAttention = "attention" // scores, softmax and weighted values, forward and backward
	partHead      = "softmax"   // of the head
	partOptimizer = "optimizer" // gradient norm and AdamW
)

// add counts an operation some times.
func (p *step) add(kind string, times int, f func()) {
	if p.err == nil {
		p.seconds[kind] += float64(times) * best(f)
	}
}

func (p *step) rowOps() {
	s, n, d, ff, st := p.shape, p.shape.rows(), p.shape.Hidden, p.shape.FF, p.stream
	x, y, dy, w, rstd := p.floats(n*d), p.floats(n*d), p.floats(n*d), p.floats(d), p.floats(n)
	norms := 2*s.Layers + 1
	p.add(partRows, norms, func() { p.RMSNorm(st, y, rstd, x, w, n, d, 1e-6) })
	p.add(partRows, norms, func() { p.RMSNormGrad(st, y, dy, x, w, rstd, n, d) })
	p.add(partRows, norms, func() { p.RMSNormWeightGrad(st, w, dy, x, rstd, n, d) })
	gateUp, act, dGateUp := p.floats(2*n*ff), p.floats(n*ff), p.floats(2*n*ff)
	p.add(partRows, s.Layers, func() { p.SwiGLU(st, act, gateUp, n, ff) })
	p.add(partRows, s.Layers, func() { p.SwiGLUGrad(st, dGateUp, act, gateUp, n, ff) })
	table, at := p.floats(s.Vocab*d), p.ints(ids(0, n, s.Vocab))
	p.add(partRows, 1, func() { p.Embedding(st, x, table, at, n, d) })
	p.add(partRows, 1, func() { p.EmbeddingGrad(st, table, dy, at, n, d) })
}

func (p *step) attention() {
	s, n, st := p.shape, p.shape.rows(), p.stream
	g := kernels.Geometry{Heads: s.Heads, KVHeads: s.KVHeads, Dim: s.HeadDim}
	q, kv := n*s.Heads*s.HeadDim, n*s.KVHeads*s.HeadDim
	spans, blocks := s.spans()
	heads := kernels.HeadsArgs{
		Geometry: g, Rows: n, Eps: 1e-6, QKV: p.floats(n * g.QKV()), WQ: p.floats(g.Dim), WK: p.floats(g.Dim), Positions: p.ints(s.positions()),
		Cos: p.floats(s.Tokens * g.Dim / 2), Sin: p.floats(s.Tokens * g.Dim / 2), Q: p.floats(q), K: p.floats(kv), V: p.floats(kv),
	}
	p.add(partRows, s.Layers, func() { p.Heads(st, heads) })
	k, v := p.floats(blocks*g.BlockFloats()), p.floats(blocks*g.BlockFloats())
	store := kernels.KVArgs{Geometry: g, Spans: spans, Rows: n, K: heads.K, V: heads.V, KCache: k, VCache: v}
	p.add(partAttention, s.Layers, func() { p.StoreKV(st, store) })
	a := kernels.AttentionArgs{Geometry: g, Spans: spans, Rows: n, Q: heads.Q, KCache: k, VCache: v, Out: p.floats(q), LSE: p.floats(n * s.Heads)}
	p.add(partAttention, s.Layers, func() { p.Attention(st, a) })
	dq, dk, dv := p.floats(q), p.floats(kv), p.floats(kv)
	grad := kernels.AttentionGradArgs{AttentionArgs: a, K: heads.K, V: heads.V, DOut: p.floats(q), DQ: dq, DK: dk, DV: dv}
	p.add(partAttention, s.Layers, func() { p.AttentionGrad(st, grad) })
	back := kernels.HeadsGradArgs{HeadsArgs: heads, DQ: dq, DK: dk, DV: dv, DQKV: p.floats(n * g.QKV()), DWQ: p.floats(g.Dim), DWK: p.floats(g.Dim)}
	p.add(partRows, s.Layers, func() { p.HeadsGrad(st, back) })
}

// head is the softmax over the vocabulary, once for the log-probs and once for their gradient.
func (p *step) head() {
	const rows = 128 // of logits at a time, as they would be if they stayed in a cache
	n := min(rows, p.shape.rows())
	logits, lse, entropy := p.floats(n*p.shape.Vocab), p.floats(n), p.floats(n)
	p.add(partHead, 2*p.shape.rows()/n, func() { p.LogSoftmax(p.stream, lse, entropy, logits, n, p.shape.Vocab) })
}

func (p *step) optimizer() {
	n, sum := p.shape.config().Elements(), make([]float64, 1)
	w, m, v, g := p.floats(n), p.floats(n), p.floats(n), p.floats(n)
	p.Clear(p.stream, v) // second moments are not negative
	p.add(partOptimizer, 1, func() { p.SumSquares(p.stream, sum, []kernels.View{g}) })
	at := kernels.AdamWStep{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Step: 10, Scale: 1}
	p.add(partOptimizer, 1, func() { p.AdamW(p.stream, w, m, v, g, n, at) })
}

func (b *bench) ints(host []int32) kernels.View {
	v := b.view(b.Ints(len(host)))
	b.UploadInts(b.stream, v, host)
	return v
}

// spans lays the step's sequences out in consecutive blocks.
func (s Shape) spans() (spans kernels.Spans, blocks int) {
	per := (s.Tokens + kernels.BlockTokens - 1) / kernels.BlockTokens
	spans.Row = []int{0}
	for i := range s.Sequences {
		spans.Row = append(spans.Row, (i+1)*s.Tokens)
		spans.Start, spans.TableAt = append(spans.Start, 0), append(spans.TableAt, i*per)
	}
	for i := range s.Sequences * per {
		spans.Table = append(spans.Table, int32(i))
	}
	return spans, s.Sequences * per
}

func (s Shape) positions() []int32 {
	out := make([]int32, s.rows())
	for i := range out {
		out[i] = int32(i % s.Tokens)
	}
	return out
}
