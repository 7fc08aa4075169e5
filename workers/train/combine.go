package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/restar-rl/restar/workers/collective"
	"github.com/restar-rl/restar/workers/model"
)

// absent makes a zero gradient the contribution of a rank without sequences: -0 is the one number whose addition changes no bit.
func absent(g *model.Gradient) *model.Gradient {
	negative := float32(math.Copysign(0, -1))
	for _, tensor := range g.Sums() {
		for _, sum := range tensor {
			for i := range sum {
				sum[i] = negative
			}
		}
	}
	return g
}

// combine sums the ranks' gradients, so that each rank holds the whole sum of the tensors that it owns, and joins their figures.
func (r *ranks) combine(ctx context.Context, p part) (sums, error) {
	g := p.gradient.Sums()
	if err := r.group.ReduceScatter(ctx, r.shards(func(i int) [][]float32 { return g[i] })); err != nil {
		return sums{}, err
	}
	messages, err := r.group.Exchange(ctx, p.sums.encode())
	if err != nil {
		return sums{}, err
	}
	all := make([]sums, len(messages))
	for i, body := range messages {
		if err := all[i].decode(body); err != nil {
			return sums{}, fmt.Errorf("figures of rank %d: %w", i, err)
		}
	}
	return collective.Tree(all, sums.join), nil
}

// squares returns every tensor's sum of squares, each computed by its owner.
func (r *ranks) squares(ctx context.Context, g []model.Tensor) ([]float64, error) {
	var own []model.Tensor
	for i, t := range g {
		if r.owns(i) {
			own = append(own, t)
		}
	}
	squares, err := model.SumSquares(ctx, vectors(own)...)
	if err != nil {
		return nil, err
	}
	var mine []byte
	for _, x := range squares {
		mine = appendFloat64(mine, x)
	}
	messages, err := r.group.Exchange(ctx, mine)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(g))
	for i := range g {
		from := &messages[r.owner[i]]
		if len(*from) < 8 {
			return nil, fmt.Errorf("rank %d sent too few sums of squares", r.owner[i])
		}
		out[i], *from = math.Float64frombits(binary.LittleEndian.Uint64(*from)), (*from)[8:]
	}
	return out, nil
}

// fields lists the figures that travel between ranks.
func (a *sums) fields() (floats []*float64, counts []*int) {
	return []*float64{&a.loss, &a.entropy, &a.kl, &a.refKL, &a.mismatch, &a.maxRatio, &a.maxMismatch},
		[]*int{&a.clipLow, &a.clipHigh, &a.clipDual, &a.tokens}
}

func (a sums) encode() (out []byte) {
	floats, counts := a.fields()
	for _, f := range floats {
		out = appendFloat64(out, *f)
	}
	for _, n := range counts {
		out = binary.LittleEndian.AppendUint64(out, uint64(*n))
	}
	return out
}

func (a *sums) decode(body []byte) error {
	floats, counts := a.fields()
	if want := 8 * (len(floats) + len(counts)); len(body) != want {
		return fmt.Errorf("%d bytes, want %d", len(body), want)
	}
	for i, f := range floats {
		*f = math.Float64frombits(binary.LittleEndian.Uint64(body[8*i:]))
	}
	body = body[8*len(floats):]
	for i, n := range counts {
		*n = int(binary.LittleEndian.Uint64(body[8*i:]))
	}
	return nil
}

func appendFloat64(out []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
}
