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
	hidden, logp, entropy, lse, scratch []float32
	logits                              product // of all rows
	targets                             []int32
}

func (s *stream) head(op string, b *Backend, a *kernels.HeadArgs) lossViews {
	v := lossViews{
		hidden:  s.floats(op, "Hidden", a.Hidden, a.Rows*a.Dim),
		logits:  s.rightOperand(op, b, a.Hidden, a.Packed, kernels.Shape{M: a.Rows, N: a.Vocab, K: a.Dim}),
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
func (b *Backend) rowLogits(w *worker, v *lossViews, hidden, logits []float32) {
	p := v.logits
	p.c, p.a, p.size.M = logits, hidden, len(hidden)/p.size.K
	b.block(w, &p, 0, p.size.M, 0, panels(p.size.N))
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
		b.rowLogits(w, &v, v.hidden[from*a.Dim:to*a.Dim], logits)
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
	back := st.headWeights(b, &a)
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
		back.c, back.a, back.size.M = grad, d, n
		b.run(st, back)
		b.run(st, product{c: dw, a: d, b: hidden, lda: a.Vocab, ldb: a.Dim, jump: panel, jumpA: colChunk, transposed: true, accumulate: true,
			size: kernels.Shape{M: a.Vocab, N: a.Dim, K: n}})
		for i, r := range chunk {
			copy(dh[r*a.Dim:(r+1)*a.Dim], grad[i*a.Dim:])
		}
	}
}

// headWeights is the product of dlogits with the head's weights; its left operand and result are set later.
func (s *stream) headWeights(b *Backend, a *kernels.HeadGradArgs) product {
	p := product{size: kernels.Shape{N: a.Dim, K: a.Vocab}, lda: a.Vocab}
	if dtype(a.Weights) == kernels.BF16 {
		p.kind, p.ldb, p.jump = widened, panel, panel*even(a.Vocab)/2
		p.b = words(s.halves("HeadGrad", "Weights", a.Weights, b.PackedLen(kernels.BF16, a.Dim, a.Vocab)))
		return p
	}
	p.ldb, p.jump = a.Dim, panel
	p.b = s.floats("HeadGrad", "Weights", a.Weights, a.Vocab*a.Dim)
	return p
}

// dLogits is coef (onehot - softmax) of gathered rows.
func (b *Backend) dLogits(st *stream, a *kernels.HeadArgs, v *lossViews, coef []float32, chunk []int, hidden, d []float32) {
	st.rows(len(chunk), logitRows(st, len(chunk)), func(w *worker, from, to int) {
		b.rowLogits(w, v, hidden[from*a.Dim:to*a.Dim], d[from*a.Vocab:to*a.Vocab])
		for i := from; i < to; i++ {
			row, r := d[i*a.Vocab:(i+1)*a.Vocab], chunk[i]
			b.probsGrad(row, v.lse[r], coef[r])
			row[v.targets[r]] += coef[r]
		}
	})
}
