package cpu

import (
	"math"

	"github.com/restar-rl/restar/kernels"
)

// headRows is the number of rows whose logits exist at once: 1 MiB of logits at a vocabulary of 1024.
const headRows = 256

// logitRows is the number of rows whose logits one item computes: whole register tiles, several items a thread, and not so many rows
// that their logits leave the second-level cache.
func logitRows(s *stream, rows int) int {
	return min(8, max(1, rows/(4*s.threads()*tileRows))) * tileRows
}

// HeadScratch is room for the logits of headRows rows.
func (b *Backend) HeadScratch(vocab int) int { return headRows * vocab }

// logSoftmax returns the log of the sum of exponentials and the entropy of one row, both natural: with d = x - max,
// lse = max + log(sum e^d), entropy = log(sum e^d) - sum(d e^d)/sum(e^d).
func (b *Backend) logSoftmax(x []float32) (lse, entropy float32) {
	var top, sum, weighted [lanes]float32
	for i := range top {
		top[i] = float32(math.Inf(-1))
	}
	b.maxLanes(x, &top)
	m := top[0]
	for _, v := range top {
		m = max(m, v)
	}
	b.expSumLanes(x, m, &sum, &weighted)
	total := fold(&sum)
	logTotal := math.Log(float64(total))
	return float32(float64(m) + logTotal), float32(logTotal - float64(fold(&weighted))/float64(total))
}

// LogSoftmaxRow is logSoftmax for callers with a row of logits in host memory.
func (b *Backend) LogSoftmaxRow(logits []float32) (lse, entropy float32) { return b.logSoftmax(logits) }

// LogSoftmax reduces rows of logits.
func (b *Backend) LogSoftmax(s kernels.Stream, lse, entropy, logits kernels.View, rows, vocab int) {
	st := s.(*stream)
	l, e := st.floats("LogSoftmax", "lse", lse, rows), st.floats("LogSoftmax", "entropy", entropy, rows)
	x := st.floats("LogSoftmax", "logits", logits, rows*vocab)
	if st.err != nil {
		return
	}
	st.rows(rows, rowsOf(vocab), func(_ *worker, from, to int) {
		for r := from; r < to; r++ {
			l[r], e[r] = b.logSoftmax(x[r*vocab : (r+1)*vocab])
		}
	})
}

type lossViews struct {
	hidden, packed, logp, entropy, lse, scratch []float32
	targets                                     []int32
}

func (s *stream) head(op string, b *Backend, a *kernels.HeadArgs) lossViews {
	v := lossViews{
		hidden:  s.floats(op, "Hidden", a.Hidden, a.Rows*a.Dim),
		packed:  s.floats(op, "Packed", a.Packed, b.PackedLen(a.Vocab, a.Dim)),
		lse:     s.floats(op, "LSE", a.LSE, a.Rows),
		targets: s.ints(op, "Targets", a.Targets, a.Rows),
		scratch: s.atLeast(op, "Scratch", a.Scratch, b.HeadScratch(a.Vocab)),
	}
	for r, t := range v.targets {
		if int(t) >= a.Vocab {
			s.fail("%s: Targets[%d] is %d, want below %d", op, r, t, a.Vocab)
			break
		}
	}
	return v
}

// rowLogits computes the logits of rows [from, to) into out.
func (b *Backend) rowLogits(a *kernels.HeadArgs, v *lossViews, out []float32, from, to int) {
	p := product{c: out, a: v.hidden[from*a.Dim:], b: v.packed, lda: a.Dim, ldb: panel, jump: panel * a.Dim,
		size: kernels.Shape{M: to - from, N: a.Vocab, K: a.Dim}}
	b.block(&p, 0, to-from, 0, (a.Vocab+panel-1)/panel)
}

// HeadLogProbs gives each item some rows: logits, then reductions, while the logits are in cache.
func (b *Backend) HeadLogProbs(s kernels.Stream, a kernels.HeadArgs) {
	st := s.(*stream)
	v := st.head("HeadLogProbs", b, &a)
	v.logp, v.entropy = st.floats("HeadLogProbs", "LogP", a.LogP, a.Rows), st.floats("HeadLogProbs", "Entropy", a.Entropy, a.Rows)
	if st.err != nil {
		return
	}
	st.rows(a.Rows, logitRows(st, a.Rows), func(w *worker, from, to int) {
		logits := w.buffer(0, (to-from)*a.Vocab)
		b.rowLogits(&a, &v, logits, from, to)
		for r := from; r < to; r++ {
			row := logits[(r-from)*a.Vocab : (r-from+1)*a.Vocab]
			v.logp[r], v.entropy[r], v.lse[r] = 0, 0, 0
			if t := v.targets[r]; t >= 0 {
				v.lse[r], v.entropy[r] = b.logSoftmax(row)
				v.logp[r] = row[t] - v.lse[r]
			}
		}
	})
}

// HeadGrad runs chunk by chunk: logits and dlogits of a chunk of rows, then DHidden and DWeights from it.
func (b *Backend) HeadGrad(s kernels.Stream, a kernels.HeadGradArgs) {
	st := s.(*stream)
	v := st.head("HeadGrad", b, &a.HeadArgs)
	coef := st.floats("HeadGrad", "Coef", a.Coef, a.Rows)
	weights := st.floats("HeadGrad", "Weights", a.Weights, a.Vocab*a.Dim)
	dh := st.floats("HeadGrad", "DHidden", a.DHidden, a.Rows*a.Dim)
	dw := st.floats("HeadGrad", "DWeights", a.DWeights, a.Vocab*a.Dim)
	if st.err != nil {
		return
	}
	for from := 0; from < a.Rows; from += headRows {
		to := min(a.Rows, from+headRows)
		d := v.scratch[:(to-from)*a.Vocab]
		b.dLogits(st, &a.HeadArgs, &v, coef, d, from, to)
		b.run(st, product{c: dh[from*a.Dim : to*a.Dim], a: d, b: weights, lda: a.Vocab, ldb: a.Dim, jump: panel,
			size: kernels.Shape{M: to - from, N: a.Dim, K: a.Vocab}})
		b.run(st, product{c: dw, a: d, b: v.hidden[from*a.Dim:], lda: a.Vocab, ldb: a.Dim, jump: panel, transposed: true,
			accumulate: true, size: kernels.Shape{M: a.Vocab, N: a.Dim, K: to - from}})
	}
}

func (b *Backend) dLogits(st *stream, a *kernels.HeadArgs, v *lossViews, coef, d []float32, first, last int) {
	st.rows(last-first, logitRows(st, last-first), func(_ *worker, from, to int) {
		rows := d[from*a.Vocab : to*a.Vocab]
		b.rowLogits(a, v, rows, first+from, first+to)
		for r := from; r < to; r++ {
			row, c, t := d[r*a.Vocab:(r+1)*a.Vocab], coef[first+r], v.targets[first+r]
			if t < 0 || c == 0 {
				clear(row)
				continue
			}
			b.probsGrad(row, v.lse[first+r], c)
			row[t] += c
		}
	})
}
