package model

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/kernels"
)

// Backward runs the forward pass, asks coef for dL/dlogp of every token (0 where a token does not count; the values at sequences'
// first tokens are ignored), and adds the gradient of L to g. Sums over tokens continue those of earlier calls, so calls over
// consecutive sequences give the bits of one call over all.
func (m *Model) Backward(ctx context.Context, ws *Workspace, packed Packed,
	coef func(logp, entropy []float32) ([]float32, error), g *Gradient) error {
	if g.err != nil {
		return fmt.Errorf("gradient: %w", g.err)
	}
	p, x, kv, err := m.packedForward(ctx, ws, packed, true)
	if err != nil {
		return err
	}
	a := p.headArgs(x, packed)
	logp, entropy, err := p.logProbs(ctx, a)
	if err != nil {
		return err
	}
	c, err := coef(logp, entropy)
	if err != nil {
		return err
	}
	if len(c) != p.rows {
		return fmt.Errorf("coef returned %d values for %d tokens", len(c), p.rows)
	}
	dx := p.headGrad(a, x, c, g)
	for l := m.Config.Layers - 1; l >= 0; l-- {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.recompute && l < m.Config.Layers-1 { // the last layer's activations are still there
			p.gateUp(l, p.attend(l, p.f("x", l, p.rows*m.Config.HiddenSize), kv))
		}
		p.mlpGrad(l, dx, g)
		p.attentionGrad(l, dx, kv, g)
	}
	m.backend.EmbeddingGrad(p.s, g.embedding, dx, p.ids, p.rows, m.Config.HiddenSize)
	return p.sync(ctx)
}

// headGrad returns the gradient of the residual stream x after the last layer.
func (p *pass) headGrad(a kernels.HeadArgs, x kernels.View, coef []float32, g *Gradient) kernels.View {
	b, n, d := p.m.backend, p.rows, p.m.Config.HiddenSize
	shifted := p.f("coef", 0, n)
	b.Clear(p.s, shifted)
	if n > 0 {
		b.Upload(p.s, shifted.Slice(0, n-1), coef[1:])
	}
	dh := p.f("dh", 0, n*d)
	b.HeadGrad(p.s, kernels.HeadGradArgs{HeadArgs: a, Weights: p.m.weights.head, Coef: shifted, DHidden: dh, DWeights: g.tensors.head})
	dx := p.f("dx", 0, n*d)
	b.Clear(p.s, dx)
	p.normGrad(dx, dh, x, p.m.weights.norm, g.tensors.norm)
	return dx
}

// normGrad adds the gradient through a norm to dx and to its weights. The norm's factors are those of the last RMSNorm of x.
func (p *pass) normGrad(dx, dh, x, w, dw kernels.View) {
	b, n, d, rstd := p.m.backend, p.rows, p.m.Config.HiddenSize, p.f("rstd", 0, p.rows)
	b.RMSNormWeightGrad(p.s, dw, dh, x, rstd, n, d)
	b.RMSNormGrad(p.s, dx, dh, x, w, rstd, n, d)
}

// norm computes a norm of kept activations again, which is cheaper than keeping it.
func (p *pass) norm(x, w kernels.View) kernels.View {
	h := p.f("h", 0, x.Len)
	p.m.backend.RMSNorm(p.s, h, p.f("rstd", 0, p.rows), x, w, p.rows, p.m.Config.HiddenSize, float32(p.m.Config.RMSNormEps))
	return h
}

// addBiasGrad continues the gradient of a bias, if the family has one there.
func (p *pass) addBiasGrad(dbias, dy kernels.View, dim int) {
	if !dbias.Absent() {
		p.m.backend.BiasGrad(p.s, dbias, dy, p.rows, dim)
	}
}

// mlpGrad turns dx from the gradient of a layer's output into that of the residual stream before its MLP.
func (p *pass) mlpGrad(l int, dx kernels.View, g *Gradient) {
	b, w, dw := p.m.backend, p.m.weights.layers[l], g.tensors.layers[l]
	n, d, ff := p.rows, p.m.Config.HiddenSize, p.m.Config.IntermediateSize
	mid, gateUp, act := p.kept("mid", l, n*d), p.kept("gateUp", l, 2*n*ff), p.f("act", 0, n*ff)
	p.addBiasGrad(dw.downBias, dx, d)
	b.SwiGLU(p.s, act, gateUp, n, ff)
	b.GemmTN(p.s, dw.down, dx, act, kernels.Shape{M: d, N: ff, K: n}, true)
	dact, dGateUp := p.f("dact", 0, n*ff), p.f("dGateUp", 0, 2*n*ff)
	b.GemmNN(p.s, dact, dx, w.down, kernels.Shape{M: n, N: ff, K: d}, false)
	b.SwiGLUGrad(p.s, dGateUp, dact, gateUp, n, ff)
	p.addBiasGrad(dw.gateUpBias, dGateUp, 2*ff)
	h := p.norm(mid, w.postAttention)
	b.GemmTN(p.s, dw.gateUp, dGateUp, h, kernels.Shape{M: 2 * ff, N: d, K: n}, true)
	dh := p.f("dh", 0, n*d)
	b.GemmNN(p.s, dh, dGateUp, w.gateUp, kernels.Shape{M: n, N: d, K: 2 * ff}, false)
	p.normGrad(dx, dh, mid, w.postAttention, dw.postAttention)
}

// attentionGrad goes on to the gradient of the layer's input.
func (p *pass) attentionGrad(l int, dx kernels.View, kv caches, g *Gradient) {
	b, c, w, dw := p.m.backend, p.m.Config, p.m.weights.layers[l], g.tensors.layers[l]
	n, d, q, kvd, wide := p.rows, c.HiddenSize, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, c.geometry().QKV()
	p.addBiasGrad(dw.outBias, dx, d)
	k, v := kv(l)
	a := p.attentionArgs(l, k, v)
	b.GemmTN(p.s, dw.out, dx, a.Out, kernels.Shape{M: d, N: q, K: n}, true)
	dout := p.f("dattended", 0, n*q)
	b.GemmNN(p.s, dout, dx, w.out, kernels.Shape{M: n, N: q, K: d}, false)
	heads := p.headsArgs(l)
	b.StoreKV(p.s, p.kvArgs(l, k, v))
	dq, dk, dv := p.f("dq", 0, n*q), p.f("dk", 0, n*kvd), p.f("dv", 0, n*kvd)
	b.AttentionGrad(p.s, kernels.AttentionGradArgs{AttentionArgs: a, K: heads.K, V: heads.V, DOut: dout, DQ: dq, DK: dk, DV: dv})
	dqkv := p.f("dqkv", 0, n*wide)
	b.HeadsGrad(p.s, kernels.HeadsGradArgs{HeadsArgs: heads, DQ: dq, DK: dk, DV: dv, DQKV: dqkv, DWQ: dw.qNorm, DWK: dw.kNorm})
	p.addBiasGrad(dw.qkvBias, dqkv, wide)
	x := p.f("x", l, n*d)
	h := p.norm(x, w.inputNorm)
	b.GemmTN(p.s, dw.qkv, dqkv, h, kernels.Shape{M: wide, N: d, K: n}, true)
	dh := p.f("dh", 0, n*d)
	b.GemmNN(p.s, dh, dqkv, w.qkv, kernels.Shape{M: n, N: d, K: wide}, false)
	p.normGrad(dx, dh, x, w.inputNorm, dw.inputNorm)
}
