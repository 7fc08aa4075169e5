package cpu

import (
	"math"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

// logSoftmaxOracle returns the log-probabilities of a row of logits.
func logSoftmaxOracle(x []float64) []float64 {
	top, total := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, v)
	}
	for _, v := range x {
		total += math.Exp(v - top)
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v - top - math.Log(total)
	}
	return y
}

func TestHeadLogProbsAndTheirGradientMatchTheOracle(t *testing.T) {
	const dim = 9
	onEveryPath(t, func(b *bench) {
		for _, c := range []struct{ rows, vocab int }{{1, 2}, {7, 45}, {700, 61}} {
			hidden, head := b.random(c.rows*dim), b.random(c.vocab*dim)
			targets, coef := make([]int32, c.rows), b.random(c.rows)
			for r := range targets {
				targets[r] = int32(b.r.IntN(c.vocab+1)) - 1
			}
			for r := 0; r < c.rows; r += 3 {
				coef[r] = 0
			}
			packed := poison(b.PackedLen(kernels.F32, c.vocab, dim))
			b.Pack(b.s, b.view(packed), b.view(head), c.vocab, dim)
			logp, entropy := poison(c.rows), poison(c.rows)
			a := kernels.HeadArgs{Rows: c.rows, Dim: dim, Vocab: c.vocab, Hidden: b.view(hidden), Packed: b.view(packed), Targets: b.intView(targets),
				LogP: b.view(logp), Entropy: b.view(entropy), LSE: b.view(poison(c.rows)), Scratch: b.view(poison(b.HeadScratch(dim, c.vocab)))}
			b.HeadLogProbs(b.s, a)
			dh, dw := poison(c.rows*dim), make([]float32, c.vocab*dim)
			b.HeadGrad(b.s, kernels.HeadGradArgs{HeadArgs: a, Weights: b.view(head), Coef: b.view(coef), DHidden: b.view(dh), DWeights: b.view(dw)})
			b.sync()
			lp, ent, wantH, wantW := headOracle(c.rows, c.vocab, dim, wide(hidden), wide(head), targets, coef)
			b.near("logp", logp, lp, 1e-6)
			b.near("entropy", entropy, ent, 2e-6)
			b.near("dhidden", dh, wantH, 3e-6)
			b.near("dweights", dw, wantW, 3e-6)
		}
	})
}

func headOracle(rows, vocab, dim int, hidden, head []float64, targets []int32, coef []float32) (lp, ent, dh, dw []float64) {
	lp, ent, dh, dw = make([]float64, rows), make([]float64, rows), make([]float64, rows*dim), make([]float64, vocab*dim)
	for r := range rows {
		if targets[r] < 0 {
			continue
		}
		x := make([]float64, vocab)
		for v := range vocab {
			for d := range dim {
				x[v] += hidden[r*dim+d] * head[v*dim+d]
			}
		}
		y := logSoftmaxOracle(x)
		lp[r] = y[targets[r]]
		for v := range vocab {
			p := math.Exp(y[v])
			ent[r] -= p * y[v]
			g := -p
			if int32(v) == targets[r] {
				g++
			}
			for d := range dim {
				dh[r*dim+d] += float64(coef[r]) * g * head[v*dim+d]
				dw[v*dim+d] += float64(coef[r]) * g * hidden[r*dim+d]
			}
		}
	}
	return lp, ent, dh, dw
}

func TestLogSoftmaxOfARowIsThatOfTheOperation(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		const rows, vocab = 3, 77
		x := b.random(rows * vocab)
		x[5] = 60 // a nearly certain row
		lse, entropy := poison(rows), poison(rows)
		b.LogSoftmax(b.s, b.view(lse), b.view(entropy), b.view(x), rows, vocab)
		for r := range rows {
			l, e := b.LogSoftmaxRow(x[r*vocab : (r+1)*vocab])
			if l != lse[r] || e != entropy[r] {
				b.t.Errorf("row %d: %g, %g from LogSoftmaxRow, %g, %g from LogSoftmax", r, l, e, lse[r], entropy[r])
			}
			y := logSoftmaxOracle(wide(x[r*vocab : (r+1)*vocab]))
			b.near("logp", []float32{x[r*vocab] - l}, y[:1], 1e-6)
		}
	})
}
