package model

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/kernels"
)

// Packed is sequences back to back without padding: sequence i is IDs[Offsets[i]:Offsets[i+1]], and the last offset is len(IDs).
type Packed struct {
	IDs     []int32
	Offsets []int
}

// Pack joins sequences.
func Pack(sequences ...[]int32) Packed {
	p := Packed{Offsets: []int{0}}
	for _, s := range sequences {
		p.IDs = append(p.IDs, s...)
		p.Offsets = append(p.Offsets, len(p.IDs))
	}
	return p
}

func (p Packed) check(c Config) error {
	n := len(p.Offsets) - 1
	if n < 0 || p.Offsets[0] != 0 || p.Offsets[n] != len(p.IDs) {
		return fmt.Errorf("packed offsets %v do not run from 0 to %d ids", p.Offsets, len(p.IDs))
	}
	for i := range n {
		if l := p.Offsets[i+1] - p.Offsets[i]; l < 1 || l > c.MaxPosition {
			return fmt.Errorf("packed sequence %d has %d tokens, want 1 to %d (max_position_embeddings)", i, l, c.MaxPosition)
		}
	}
	return checkIDs(p.IDs, c.VocabSize)
}

func checkIDs(ids []int32, vocab int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("token %d has id %d, want 0 <= id < %d (vocab_size)", i, id, vocab)
		}
	}
	return nil
}

// pass starts a pass over rows whose keys and values go where spans say.
func (m *Model) pass(ws *Workspace, ids []int32, spans kernels.Spans, keep bool) *pass {
	if ws == nil {
		ws = NewWorkspace()
	}
	ws.open(m.backend)
	p := &pass{m: m, ws: ws, s: ws.stream, rows: len(ids), spans: spans, keep: keep, recompute: keep && ws.Recompute}
	p.ids, p.pos = p.i("ids", p.rows), p.i("pos", p.rows)
	pos, end := make([]int32, p.rows), 0
	for i, start := range spans.Start {
		end = max(end, start+spans.Row[i+1]-spans.Row[i])
		for r := spans.Row[i]; r < spans.Row[i+1]; r++ {
			pos[r] = int32(start + r - spans.Row[i])
		}
	}
	var err error
	if p.angles, err = m.angles.upTo(m.backend, end); err != nil {
		p.err = err
	}
	m.backend.UploadInts(p.s, p.ids, ids)
	m.backend.UploadInts(p.s, p.pos, pos)
	return p
}

// sync waits for the pass so far. A failed stream is not used again.
func (p *pass) sync(ctx context.Context) error {
	err := p.err
	if err == nil {
		err = p.s.Sync(ctx)
	}
	if err != nil {
		p.ws.stream = nil
	}
	return err
}

// caches gives a layer its key and value blocks.
type caches func(layer int) (k, v kernels.View)

// forward runs the decoder and returns the residual stream after the last layer.
func (p *pass) forward(ctx context.Context, kv caches) (kernels.View, error) {
	b, d := p.m.backend, p.m.Config.HiddenSize
	x := p.f("x", 0, p.rows*d)
	b.Embedding(p.s, x, p.m.weights.embed, p.ids, p.rows, d)
	for l := range p.m.weights.layers {
		if err := ctx.Err(); err != nil {
			return x, err
		}
		x = p.layer(l, x, kv)
	}
	return x, nil
}

// layer is one decoder layer: mid = x + attention(norm(x)), then mid + mlp(norm(mid)).
func (p *pass) layer(l int, x kernels.View, kv caches) kernels.View {
	b, c := p.m.backend, p.m.Config
	n, d, ff := p.rows, c.HiddenSize, c.IntermediateSize
	mid := p.attend(l, x, kv)
	gateUp := p.gateUp(l, mid)
	act := p.activate(l, gateUp)
	x = p.next("x", l+1, mid)
	b.GemmNT(p.s, x, act, p.m.packed.layers[l].down, kernels.Shape{M: n, N: d, K: ff}, true)
	p.addBias(x, p.m.weights.layers[l].downBias, d)
	return x
}

// attend returns the residual stream between a layer's attention and its MLP.
func (p *pass) attend(l int, x kernels.View, kv caches) kernels.View {
	b, c, w, packed := p.m.backend, p.m.Config, p.m.weights.layers[l], p.m.packed.layers[l]
	n, d := p.rows, c.HiddenSize
	h, _ := p.norm(attentionNorm, l, x, w.inputNorm)
	qkv := p.kept("qkv", l, n*c.geometry().QKV())
	b.GemmNT(p.s, qkv, h, packed.qkv, kernels.Shape{M: n, N: c.geometry().QKV(), K: d}, false)
	p.addBias(qkv, w.qkvBias, c.geometry().QKV())
	b.Heads(p.s, p.headsArgs(l))
	k, v := kv(l)
	b.StoreKV(p.s, p.kvArgs(l, k, v))
	a := p.attentionArgs(l, k, v)
	b.Attention(p.s, a)

	x = p.next("mid", p.slot(l), x)
	b.GemmNT(p.s, x, p.attended(l), packed.out, kernels.Shape{M: n, N: d, K: c.Heads * c.HeadDim}, true)
	p.addBias(x, w.outBias, d)
	return x
}

// gateUp returns the MLP's gate and up projections.
func (p *pass) gateUp(l int, mid kernels.View) kernels.View {
	b, c, w := p.m.backend, p.m.Config, p.m.weights.layers[l]
	n, d, ff := p.rows, c.HiddenSize, c.IntermediateSize
	h, _ := p.norm(mlpNorm, l, mid, w.postAttention)
	gateUp := p.kept("gateUp", l, 2*n*ff)
	b.GemmNT(p.s, gateUp, h, p.m.packed.layers[l].gateUp, kernels.Shape{M: n, N: 2 * ff, K: d}, false)
	p.addBias(gateUp, w.gateUpBias, 2*ff)
	return gateUp
}

// norm is RMSNorm of x as an operand of products, with the norm's factors.
func (p *pass) norm(name normName, l int, x, w kernels.View) (h, rstd kernels.View) {
	h, rstd = p.normed(name, l)
	p.m.backend.RMSNorm(p.s, h, rstd, x, w, p.rows, p.m.Config.HiddenSize, float32(p.m.Config.RMSNormEps))
	return h, rstd
}

// normName names the buffers of one of a layer's norms: its result and its factors.
type normName struct{ result, rstd string }

var (
	attentionNorm = normName{"norm attention", "rstd attention"}
	mlpNorm       = normName{"norm mlp", "rstd mlp"}
)

// normed is where norm leaves its results.
func (p *pass) normed(name normName, l int) (h, rstd kernels.View) {
	return p.result(name.result, l, p.m.Config.HiddenSize), p.kept(name.rstd, l, p.rows)
}

// activate is SwiGLU as an operand of products.
func (p *pass) activate(l int, gateUp kernels.View) kernels.View {
	ff := p.m.Config.IntermediateSize
	act := p.result("act", l, ff)
	p.m.backend.SwiGLU(p.s, act, gateUp, p.rows, ff)
	return act
}

// addBias adds a bias to every row, if the family has one there.
func (p *pass) addBias(x, bias kernels.View, dim int) {
	if !bias.Absent() {
		p.m.backend.AddBias(p.s, x, bias, p.rows, dim)
	}
}

// next is where the residual stream goes on: a copy if activations are kept, the same memory otherwise.
func (p *pass) next(name string, layer int, x kernels.View) kernels.View {
	if !p.keep {
		return x
	}
	y := p.f(name, layer, x.Len)
	p.m.backend.Copy(p.s, y, x)
	return y
}

func (p *pass) headsArgs(l int) kernels.HeadsArgs {
	c, w := p.m.Config, p.m.weights.layers[l]
	q, kv := p.rows*c.Heads*c.HeadDim, p.rows*c.KVHeads*c.HeadDim
	return kernels.HeadsArgs{
		Geometry: c.geometry(), Rows: p.rows, Eps: float32(c.RMSNormEps), QKV: p.kept("qkv", l, p.rows*c.geometry().QKV()),
		WQ: w.qNorm, WK: w.kNorm, Positions: p.pos, Cos: p.angles.cos, Sin: p.angles.sin,
		Q: p.kept("q", l, q), K: p.kept("k", l, kv), V: p.kept("v", l, kv),
	}
}

func (p *pass) kvArgs(l int, k, v kernels.View) kernels.KVArgs {
	h := p.headsArgs(l)
	return kernels.KVArgs{Geometry: h.Geometry, Spans: p.spans, Rows: p.rows, K: h.K, V: h.V, KCache: k, VCache: v}
}

func (p *pass) attentionArgs(l int, k, v kernels.View) kernels.AttentionArgs {
	c, h := p.m.Config, p.headsArgs(l)
	a := kernels.AttentionArgs{Geometry: h.Geometry, Spans: p.spans, Rows: p.rows, Q: h.Q, KCache: k, VCache: v}
	if p.m.precision != PrecisionFP32 {
		a.Rounded = p.attended(l)
	}
	if p.keep || p.m.precision == PrecisionFP32 {
		a.Out = p.kept("attended", l, p.rows*c.Heads*c.HeadDim)
	}
	if p.keep {
		a.LSE = p.kept("lse", l, p.rows*c.Heads)
	}
	return a
}

// attended is the result of attention as operand of the output projection.
func (p *pass) attended(l int) kernels.View {
	return p.operand("attended", p.slot(l), p.m.Config.Heads*p.m.Config.HeadDim)
}

// packedSpans lays sequences out in consecutive scratch blocks.
func packedSpans(p Packed) (s kernels.Spans, blocks int) {
	s.Row = p.Offsets
	for i := range len(p.Offsets) - 1 {
		s.Start = append(s.Start, 0)
		s.TableAt = append(s.TableAt, blocks)
		blocks += (p.Offsets[i+1] - p.Offsets[i] + BlockTokens - 1) / BlockTokens
	}
	s.Table = make([]int32, blocks)
	for i := range s.Table {
		s.Table[i] = int32(i)
	}
	return s, blocks
}

// packedForward runs a packed pass up to the final norm and returns the pass, the residual stream and the scratch caches.
func (m *Model) packedForward(ctx context.Context, ws *Workspace, packed Packed, keep bool) (*pass, kernels.View, caches, error) {
	if err := packed.check(m.Config); err != nil {
		return nil, kernels.View{}, nil, err
	}
	spans, blocks := packedSpans(packed)
	p := m.pass(ws, packed.IDs, spans, keep)
	n := blocks * m.Config.geometry().BlockFloats()
	kv := func(int) (kernels.View, kernels.View) {
		return p.scratchCache("kcache", n), p.scratchCache("vcache", n)
	}
	x, err := p.forward(ctx, kv)
	return p, x, kv, err
}

// LogProbs returns, for each token, its log-probability given the earlier tokens of its own sequence, and the entropy of the
// distribution it was drawn from (natural log, temperature 1). Both are 0 at each sequence's first token.
func (m *Model) LogProbs(ctx context.Context, ws *Workspace, packed Packed) (logp, entropy []float32, err error) {
	p, x, _, err := m.packedForward(ctx, ws, packed, false)
	if err != nil {
		return nil, nil, err
	}
	return p.logProbs(ctx, p.headArgs(x, packed))
}

// headArgs normalises the residual stream and sets each row's target to the next token of its sequence.
func (p *pass) headArgs(x kernels.View, packed Packed) kernels.HeadArgs {
	b, c := p.m.backend, p.m.Config
	hidden := p.f("h", 0, p.rows*c.HiddenSize)
	b.RMSNorm(p.s, hidden, p.f("rstd", 0, p.rows), x, p.m.weights.norm, p.rows, c.HiddenSize, float32(c.RMSNormEps))
	targets := make([]int32, p.rows)
	copy(targets, packed.IDs[min(1, p.rows):])
	for _, end := range packed.Offsets[1:] {
		targets[end-1] = -1
	}
	t := p.i("targets", p.rows)
	b.UploadInts(p.s, t, targets)
	a := kernels.HeadArgs{
		Rows: p.rows, Dim: c.HiddenSize, Vocab: c.VocabSize, Hidden: hidden, Packed: p.m.packed.head, Targets: t,
		LogP: p.f("logp", 0, p.rows), Entropy: p.f("entropy", 0, p.rows), LSE: p.f("headLSE", 0, p.rows),
		Scratch: p.f("scratch", 0, b.HeadScratch(c.HiddenSize, c.VocabSize)),
	}
	if p.keep {
		a.Kept = p.f("logits", 0, min(p.rows*c.VocabSize, keptLogits))
	}
	return a
}

// keptLogits bounds the logits that a pass keeps for its gradient, whatever its tokens and vocabulary: 64 MiB. A gradient without them costs a
// fourth product of the head's size.
const keptLogits = 1 << 24

// logProbs runs the head and moves row t's result to the token it predicts, t+1.
func (p *pass) logProbs(ctx context.Context, a kernels.HeadArgs) (logp, entropy []float32, err error) {
	b := p.m.backend
	b.HeadLogProbs(p.s, a)
	logp, entropy = make([]float32, p.rows), make([]float32, p.rows)
	if p.rows > 0 {
		b.Download(p.s, logp[1:], a.LogP.Slice(0, p.rows-1))
		b.Download(p.s, entropy[1:], a.Entropy.Slice(0, p.rows-1))
	}
	if err := p.sync(ctx); err != nil {
		return nil, nil, err
	}
	for t := range logp {
		if s := logp[t] + entropy[t]; s-s != 0 {
			return nil, nil, fmt.Errorf("token %d: log-probability %v, entropy %v: the weights or activations overflowed", t, logp[t], entropy[t])
		}
	}
	return logp, entropy, nil
}
