package cpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/restar-rl/restar/kernels"
)

// Sample draws one token a row.
func (b *Backend) Sample(s kernels.Stream, a kernels.SampleArgs) {
	st := s.(*stream)
	x := st.floats("Sample", "logits", a.Logits, a.Rows*a.Vocab)
	if len(a.Choices) != a.Rows || len(a.Draws) != a.Rows {
		st.fail("Sample: %d choices and %d draws for %d rows", len(a.Choices), len(a.Draws), a.Rows)
	}
	if st.err != nil {
		return
	}
	st.parallel(a.Rows, func(w *worker, r int) {
		c := &a.Choices[r]
		u := 0.0
		if c.Temperature != 0 {
			u = c.Key.Uniform(c.At)
		}
		a.Draws[r] = b.draw(w, x[r*a.Vocab:(r+1)*a.Vocab], c, u, a.Top)
	})
}

// SampleRow is Sample for callers with a row of logits in host memory.
func (b *Backend) SampleRow(logits []float32, c kernels.Choice, top int) kernels.Draw {
	u := 0.0
	if c.Temperature != 0 {
		u = c.Key.Uniform(c.At)
	}
	return b.draw(&worker{}, logits, &c, u, top)
}

// draw samples a row with u in [0,1).
func (b *Backend) draw(w *worker, logits []float32, c *kernels.Choice, u float64, top int) kernels.Draw {
	d := distribution{row: logits}
	if c.Temperature != 0 && c.Temperature != 1 {
		d.row = w.buffer(0, len(logits))
		for i, l := range logits {
			d.row[i] = l / c.Temperature
		}
	}
	lse, entropy := b.logSoftmax(d.row)
	if !finite(lse) || !finite(entropy) {
		return kernels.Draw{}
	}
	if c.Temperature != 0 && d.cut(w, c.TopK, float64(c.TopP), lse, b) {
		lse, entropy = b.logSoftmax(d.row)
	}
	at := argmax(d.row)
	if c.Temperature != 0 {
		at = invert(d.row, lse, u, at)
	}
	out := kernels.Draw{ID: d.id(at), LogP: d.row[at] - lse, Entropy: entropy}
	if out.Finite = finite(out.LogP); out.Finite && top > 0 {
		for _, i := range d.likeliest(min(top, len(d.row))) {
			out.Top = append(out.Top, kernels.Likely{ID: d.id(int(i)), LogP: d.row[i] - lse})
		}
	}
	return out
}

// distribution is the logits of some ids, in id order.
type distribution struct {
	row []float32
	ids []int32 // nil: row holds all ids
}

func (d *distribution) id(i int) int32 {
	if d.ids == nil {
		return int32(i)
	}
	return d.ids[i]
}

// cut applies top-k and then top-p, and reports whether anything was left out.
func (d *distribution) cut(w *worker, k int, p float64, lse float32, b *Backend) bool {
	all := len(d.row)
	if k > 0 && k < len(d.row) {
		d.keep(w, d.likeliest(k))
		lse, _ = b.logSoftmax(d.row)
	}
	if p > 0 && p < 1 {
		if n := d.nucleus(p, lse); len(n) < len(d.row) {
			d.keep(w, n)
		}
	}
	return len(d.row) < all
}

// keep leaves the positions given, in id order. It sorts them.
func (d *distribution) keep(w *worker, at []int32) {
	slices.Sort(at)
	row, ids := w.buffer(1, len(at)), make([]int32, len(at))
	for i, j := range at {
		ids[i] = d.id(int(j))
		row[i] = d.row[j] // in ascending order, so row may be the memory of d.row
	}
	d.row, d.ids = row, ids
}

// order compares positions: the likelier first, and of equals the smaller.
func (d *distribution) order(i, j int32) int {
	if c := cmp.Compare(d.row[j], d.row[i]); c != 0 {
		return c
	}
	return cmp.Compare(i, j)
}

// above returns the positions whose logits are at least floor, the likeliest first.
func (d *distribution) above(floor float32) []int32 {
	var at []int32
	for i, l := range d.row {
		if l >= floor {
			at = append(at, int32(i))
		}
	}
	slices.SortFunc(at, d.order)
	return at
}

// depths are the distances below the largest logit at which a cut looks for its candidates: sorting a whole vocabulary is the last resort.
var depths = [...]float32{4, 8, 16, 32, float32(math.Inf(1))}

// likeliest returns the positions of the k largest logits, the likeliest first.
func (d *distribution) likeliest(k int) []int32 {
	top := d.row[argmax(d.row)]
	for _, depth := range depths {
		if at := d.above(top - depth); len(at) >= k {
			return at[:k]
		}
	}
	return d.above(float32(math.Inf(-1)))
}

// nucleus returns the shortest prefix of the likeliest positions whose probabilities sum to p or more, or all of them.
func (d *distribution) nucleus(p float64, lse float32) []int32 {
	top := d.row[argmax(d.row)]
	var at []int32
	for _, depth := range depths {
		at = d.above(top - depth)
		sum := 0.0
		for n, i := range at {
			if sum += math.Exp(float64(d.row[i]) - float64(lse)); sum >= p {
				return at[:n+1]
			}
		}
	}
	return at
}

// invert returns the first position whose cumulative probability exceeds u. The probabilities sum to 1 only up to rounding; should u lie
// in what is missing, the most likely position takes it.
func invert(row []float32, lse float32, u float64, likely int) int {
	sum := 0.0
	for i, l := range row {
		sum += math.Exp(float64(l) - float64(lse))
		if sum > u {
			return i
		}
	}
	return likely
}

func argmax(row []float32) int {
	best := 0
	for i, l := range row {
		if l > row[best] {
			best = i
		}
	}
	return best
}

func finite(x float32) bool { return x-x == 0 }
