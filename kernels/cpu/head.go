package cpu

import (
	"math"
	"slices"

	"github.com/restar-rl/restar/kernels"
)

// headRows is the number of rows whose logits exist at once: 1 MiB of logits at a vocabulary of 1024.
const headRows = 256

// logitRows is the number of rows whose logits one item computes: whole register tiles, several items a thread, and not so many rows
// that their logits leave the second-level cache.
func logitRows(s *stream, rows int) int {
	return min(8, max(1, rows/(4*s.threads()*tileRows))) * tileRows
}

// HeadScratch is room for the logits of headRows rows, their hidden rows and the gradients of these.
func (b *Backend) HeadScratch(dim, vocab int) int { return headRows * (vocab + 2*dim) }

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
		scratch: s.atLeast(op, "Scratch", a.Scratch, b.HeadScratch(a.Dim, a.Vocab)),
	}
	for r, t := range v.targets {
		if int(t) >= a.Vocab {
			s.fail("%s: Targets[%d] is %d, want below %d", op, r, t, a.Vocab)
			break
		}
	}
	return v
}

// rowLogits computes the logits of rows of hidden states.
func (b *Backend) rowLogits(a *kernels.HeadArgs, packed, hidden, logits []float32) {
	p := product{c: logits, a: hidden, b: packed, lda: a.Dim, ldb: panel, jump: panel * a.Dim,
		size: kernels.Shape{M: len(hidden) / a.Dim, N: a.Vocab, K: a.Dim}}
	b.block(&p, 0, p.size.M, 0, (a.Vocab+panel-1)/panel)
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
		b.rowLogits(&a, v.packed, v.hidden[from*a.Dim:to*a.Dim], logits)
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

// HeadGrad gathers the rows that count and runs over them chunk by chunk: logits and dlogits, then DHidden and DWeights from these.
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
	clear(dh)
	var rows []int
	for r, t := range v.targets {
		if t >= 0 && coef[r] != 0 {
			rows = append(rows, r)
		}
	}
	for chunk := range slices.Chunk(rows, headRows) {
		n := len(chunk)
		d, rest := v.scratch[:n*a.Vocab], v.scratch[headRows*a.Vocab:]
		hidden, grad := rest[:n*a.Dim], rest[headRows*a.Dim:][:n*a.Dim]
		for i, r := range chunk {
			copy(hidden[i*a.Dim:(i+1)*a.Dim], v.hidden[r*a.Dim:])
		}
		b.dLogits(st, &a.HeadArgs, &v, coef, chunk, hidden, d)
		b.run(st, product{c: grad, a: d, b: weights, lda: a.Vocab, ldb: a.Dim, jump: panel, size: kernels.Shape{M: n, N: a.Dim, K: a.Vocab}})
		b.run(st, product{c: dw, a: d, b: hidden, lda: a.Vocab, ldb: a.Dim, jump: panel, transposed: true, accumulate: true,
			size: kernels.Shape{M: a.Vocab, N: a.Dim, K: n}})
		for i, r := range chunk {
			copy(dh[r*a.Dim:(r+1)*a.Dim], grad[i*a.Dim:])
		}
	}
}

// dLogits is coef (onehot - softmax) of gathered rows.
func (b *Backend) dLogits(st *stream, a *kernels.HeadArgs, v *lossViews, coef []float32, chunk []int, hidden, d []float32) {
	st.rows(len(chunk), logitRows(st, len(chunk)), func(_ *worker, from, to int) {
		b.rowLogits(a, v.packed, hidden[from*a.Dim:to*a.Dim], d[from*a.Vocab:to*a.Vocab])
		for i := from; i < to; i++ {
			row, r := d[i*a.Vocab:(i+1)*a.Vocab], chunk[i]
			b.probsGrad(row, v.lse[r], coef[r])
			row[v.targets[r]] += coef[r]
		}
	})
}
