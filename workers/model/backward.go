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
	if err := g.open(); err != nil {
		return err
	}
	if err := m.prepareBack(ctx); err != nil {
		return err
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
	g.begin(p.s)
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
	if g.scattered != nil {
		g.touched.mark(packed.IDs)
	}
	m.backend.EmbeddingGrad(p.s, g.embedding, dx, p.ids, p.rows, m.Config.HiddenSize)
	if err := p.sync(ctx); err != nil {
		return err
	}
	g.fresh = false
	return nil
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
	b.HeadGrad(p.s, kernels.HeadGradArgs{HeadArgs: a, Weights: p.m.packed.backHead, Coef: shifted, DHidden: dh, DWeights: g.tensors.head, Begin: g.fresh})
	dx := p.f("dx", 0, n*d)
	b.Clear(p.s, dx)
	p.normGrad(dx, dh, x, p.f("rstd", 0, n), p.m.weights.norm, g.tensors.norm)
	return dx
}

// normGrad adds the gradient through a norm of x, with the norm's factors, to dx and to its weights.
func (p *pass) normGrad(dx, dh, x, rstd, w, dw kernels.View) {
	b, n, d := p.m.backend, p.rows, p.m.Config.HiddenSize
	b.RMSNormWeightGrad(p.s, dw, dh, x, rstd, n, d)
	b.RMSNormGrad(p.s, dx, dh, x, w, rstd, n, d)
}

// normAgain is the forward pass's norm.
func (p *pass) normAgain(name normName, l int, x, w kernels.View) (h, rstd kernels.View) {
	if p.again() {
		return p.norm(name, l, x, w)
	}
	return p.normed(name, l)
}

// activateAgain is the forward pass's activate.
func (p *pass) activateAgain(l int, gateUp kernels.View) kernels.View {
	if p.again() {
		return p.activate(l, gateUp)
	}
	return p.result("act", l, p.m.Config.IntermediateSize)
}

// addBiasGrad continues the gradient of a bias, if the family has one there.
func (p *pass) addBiasGrad(dbias, dy kernels.View, dim int) {
	if !dbias.Absent() {
		p.m.backend.BiasGrad(p.s, dbias, dy, p.rows, dim)
	}
}

// weightGrad adds dy^T x to the gradient of weights [n,k], or begins it; dy[rows,n] and x[rows,k] are operands.
func (p *pass) weightGrad(g *Gradient, dw, dy, x kernels.View, n, k int) {
	size := kernels.Shape{M: n, N: k, K: p.rows}
	if p.m.precision == PrecisionFP32 {
		p.m.backend.GemmTN(p.s, dw, dy, x, size, !g.fresh)
		return
	}
	p.m.backend.GemmTNRounded(p.s, dw, dy, x, size, p.spans.Row, !g.fresh)
}

// inputGrad returns dy w for weights [n,k] and an operand dy[rows,n], in a named buffer.
func (p *pass) inputGrad(name string, dy, w kernels.View, n, k int) kernels.View {
	dx := p.f(name, 0, p.rows*k)
	p.m.backend.GemmNN(p.s, dx, dy, w, kernels.Shape{M: p.rows, N: k, K: n}, false)
	return dx
}

// mlpGrad turns dx from the gradient of a layer's output into that of the residual stream before its MLP.
func (p *pass) mlpGrad(l int, dx kernels.View, g *Gradient) {
	w, dw, back := p.m.weights.layers[l], g.tensors.layers[l], p.m.packed.back[l]
	n, d, ff := p.rows, p.m.Config.HiddenSize, p.m.Config.IntermediateSize
	mid, gateUp := p.kept("mid", l, n*d), p.kept("gateUp", l, 2*n*ff)
	p.addBiasGrad(dw.downBias, dx, d)
	dy := p.rounded("dy", dx, d)
	p.weightGrad(g, dw.down, dy, p.activateAgain(l, gateUp), d, ff)
	dact := p.inputGrad("dact", dy, back.down, d, ff)
	dGateUp := p.gateUpGrad(dact, gateUp, dw.gateUpBias)
	h, rstd := p.normAgain(mlpNorm, l, mid, w.postAttention)
	p.weightGrad(g, dw.gateUp, dGateUp, h, 2*ff, d)
	dh := p.inputGrad("dh", dGateUp, back.gateUp, 2*ff, d)
	p.normGrad(dx, dh, mid, rstd, w.postAttention, dw.postAttention)
}

// gateUpGrad is the gradient through SwiGLU as an operand; a bias needs it as floats first.
func (p *pass) gateUpGrad(dact, gateUp, dbias kernels.View) kernels.View {
	ff := p.m.Config.IntermediateSize
	if dbias.Absent() {
		d := p.operand("dGateUp", 0, 2*ff)
		p.m.backend.SwiGLUGrad(p.s, d, dact, gateUp, p.rows, ff)
		return d
	}
	d := p.f("dGateUp", 0, 2*p.rows*ff)
	p.m.backend.SwiGLUGrad(p.s, d, dact, gateUp, p.rows, ff)
	p.addBiasGrad(dbias, d, 2*ff)
	return p.rounded("dGateUp", d, 2*ff)
}

// attentionGrad goes on to the gradient of the layer's input.
func (p *pass) attentionGrad(l int, dx kernels.View, kv caches, g *Gradient) {
	b, c, w, dw, back := p.m.backend, p.m.Config, p.m.weights.layers[l], g.tensors.layers[l], p.m.packed.back[l]
	n, d, q, kvd, wide := p.rows, c.HiddenSize, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, c.geometry().QKV()
	p.addBiasGrad(dw.outBias, dx, d)
	k, v := kv(l)
	a := p.attentionArgs(l, k, v)
	dy := p.rounded("dy", dx, d)
	p.weightGrad(g, dw.out, dy, p.attended(l), d, q)
	dout := p.inputGrad("dattended", dy, back.out, d, q)
	heads := p.headsArgs(l)
	dq, dk, dv := p.f("dq", 0, n*q), p.f("dk", 0, n*kvd), p.f("dv", 0, n*kvd)
	b.AttentionGrad(p.s, kernels.AttentionGradArgs{AttentionArgs: a, K: heads.K, V: heads.V, DOut: dout, DQ: dq, DK: dk, DV: dv})
	dqkv := p.f("dqkv", 0, n*wide)
	b.HeadsGrad(p.s, kernels.HeadsGradArgs{HeadsArgs: heads, DQ: dq, DK: dk, DV: dv, DQKV: dqkv, DWQ: dw.qNorm, DWK: dw.kNorm})
	p.addBiasGrad(dw.qkvBias, dqkv, wide)
	x, operand := p.f("x", l, n*d), p.rounded("dqkv", dqkv, wide)
	h, rstd := p.normAgain(attentionNorm, l, x, w.inputNorm)
	p.weightGrad(g, dw.qkv, operand, h, wide, d)
	dh := p.inputGrad("dh", operand, back.qkv, wide, d)
	p.normGrad(dx, dh, x, rstd, w.inputNorm, dw.inputNorm)
}
