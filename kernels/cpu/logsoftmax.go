package cpu

import (
	"math"
	"slices"

	"github.com/restar-rl/restar/kernels"
)

// rowPart is what a row of logits comes to in one chunk of columns: with d = x - top, the sums of e^d and of d e^d, each kept in 16 lanes
// and folded by halves.
type rowPart [3]float32 // top, sum, weighted

func (b *Backend) rowPart(x []float32) rowPart {
	var sum, weighted [lanes]float32
	m := b.top(x)
	b.expSumLanes(x, m, &sum, &weighted)
	return rowPart{m, fold(&sum), fold(&weighted)}
}

// rowSum is a row's chunks so far, added in ascending order (online softmax: Milakov and Gimelshein 2018, alg. 3).
type rowSum struct {
	chunks        int
	top           float32
	sum, weighted float64
}

func (t *rowSum) add(p rowPart) {
	if t.chunks++; t.chunks == 1 {
		t.top, t.sum, t.weighted = p[0], float64(p[1]), float64(p[2])
		return
	}
	top, sum, weighted := max(t.top, p[0]), float64(p[1]), float64(p[2])
	down, up := float64(t.top)-float64(top), float64(p[0])-float64(top)
	old, added := math.Exp(down), math.Exp(up)
	t.weighted = float64((t.weighted+float64(down*t.sum))*old) + float64((weighted+float64(up*sum))*added)
	t.sum = float64(t.sum*old) + float64(sum*added)
	t.top = top
}

// result is lse = top + log(sum) and the entropy log(sum) - weighted/sum, both natural.
func (t *rowSum) result() (lse, entropy float32) {
	logSum := math.Log(t.sum)
	return float32(float64(t.top) + logSum), float32(logSum - t.weighted/t.sum)
}

// logSoftmax returns the log of the sum of exponentials and the entropy of one row, in the order in which the fused head finds them.
func (b *Backend) logSoftmax(x []float32) (lse, entropy float32) {
	var t rowSum
	for chunk := range slices.Chunk(x, headCols) {
		t.add(b.rowPart(chunk))
	}
	return t.result()
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
