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
	at := 0
	if c.Temperature == 0 {
		at = b.argmax(d.row)
	} else {
		at = b.invert(d.row, lse, u)
	}
	out := kernels.Draw{ID: d.id(at), LogP: d.row[at] - lse, Entropy: entropy}
	if out.Finite = finite(out.LogP); out.Finite && top > 0 {
		for _, i := range d.likeliest(b, min(top, len(d.row))) {
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
		d.keep(w, d.likeliest(b, k))
		lse, _ = b.logSoftmax(d.row)
	}
	if p > 0 && p < 1 {
		if n := d.nucleus(b, p, lse); len(n) < len(d.row) {
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
var depths = [...]float32{0.5, 1, 2, 3, 4, 6, 8, 16, 32, float32(math.Inf(1))}

// likeliest returns the positions of the k largest logits, the likeliest first.
func (d *distribution) likeliest(b *Backend, k int) []int32 {
	top := b.top(d.row)
	for _, depth := range depths {
		if at := d.above(top - depth); len(at) >= k {
			return at[:k]
		}
	}
	return d.above(float32(math.Inf(-1)))
}

// nucleus returns the shortest prefix of the likeliest positions whose probabilities sum to p or more, or all of them.
func (d *distribution) nucleus(b *Backend, p float64, lse float32) []int32 {
	top := b.top(d.row)
	var at []int32
	for _, depth := range depths {
		at = d.above(top - depth)
		sum := 0.0
		for n, i := range at {
			if sum += probability(d.row[i], lse); sum >= p {
				return at[:n+1]
			}
		}
	}
	return at
}

// invert returns the first position whose cumulative probability exceeds u. The probabilities are added one by one in float64. They sum to 1
// only up to rounding; should u lie in what is missing, the most likely position takes it.
func (b *Backend) invert(row []float32, lse float32, u float64) int {
	if b.isa == avx512 && len(row) >= expBatch {
		if at, sure := b.leap(row, lse, u); sure {
			return at
		}
	}
	sum := 0.0
	for i, l := range row {
		if sum += probability(l, lse); sum > u {
			return i
		}
	}
	return b.argmax(row)
}

func probability(l, lse float32) float64 { return math.Exp(float64(l) - float64(lse)) }

// Sums of groups find the neighbourhood of a position. They differ from sums made one by one by less than leapMargin, which is some thousand
// times the rounding of 200,000 additions.
const (
	expGroup   = 64 // as in asmgen
	expBatch   = 16 * expGroup
	leapMargin = 1e-8
)

// leap is invert with whole groups added at once. It is sure unless a sum comes so close to u that the order of addition might matter.
func (b *Backend) leap(row []float32, lse float32, u float64) (at int, sure bool) {
	var sums [expBatch / expGroup]float64
	sum := 0.0
	for from := 0; from+expBatch <= len(row); from += expBatch {
		avx512ExpGroups(&row[from], len(sums), float64(lse), &sums[0])
		for g, s := range sums {
			if sum+s < u-leapMargin {
				sum += s
				continue
			}
			for i := from + g*expGroup; i < from+(g+1)*expGroup; i++ {
				sum += probability(row[i], lse)
				if math.Abs(sum-u) < leapMargin {
					return 0, false
				}
				if sum > u {
					return i, true
				}
			}
		}
	}
	for i := len(row) / expBatch * expBatch; i < len(row); i++ {
		sum += probability(row[i], lse)
		if math.Abs(sum-u) < leapMargin {
			return 0, false
		}
		if sum > u {
			return i, true
		}
	}
	return 0, false
}

// argmax returns the first position of the largest of some numbers, none of which is a NaN.
func (b *Backend) argmax(row []float32) int {
	const chunk = 1024
	at, best := 0, float32(math.Inf(-1))
	for from := 0; from < len(row); from += chunk {
		if m := b.top(row[from:min(from+chunk, len(row))]); m > best || from == 0 {
			at, best = from, m
		}
	}
	for row[at] != best {
		at++
	}
	return at
}

// top is the largest of some numbers.
func (b *Backend) top(x []float32) float32 {
	var acc [lanes]float32
	for i := range acc {
		acc[i] = float32(math.Inf(-1))
	}
	b.maxLanes(x, &acc)
	return slices.Max(acc[:])
}

func finite(x float32) bool { return x-x == 0 }
