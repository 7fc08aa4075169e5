package model

import (
	"context"

	"github.com/restar-rl/restar/kernels"
)

// AdamW updates one tensor's weights w and moments m and v from its gradient g, element by element, on the host's backend.
func AdamW(ctx context.Context, w, m, v, g []float32, step kernels.AdamWStep) error {
	b, err := host()
	if err != nil {
		return err
	}
	var views [4]kernels.View
	for i, x := range [][]float32{w, m, v, g} {
		if views[i], err = b.Wrap(x); err != nil {
			return err
		}
	}
	s := b.NewStream(kernels.StreamOptions{})
	b.AdamW(s, views[0], views[1], views[2], views[3], len(w), step)
	for i, x := range [][]float32{w, m, v} {
		b.Download(s, x, views[i])
	}
	return s.Sync(ctx)
}

// SumSquares returns the sum of squares of each of xs in float64, in an order that depends on its length only.
func SumSquares(ctx context.Context, xs ...[]float32) ([]float64, error) {
	b, err := host()
	if err != nil {
		return nil, err
	}
	views := make([]kernels.View, len(xs))
	for i, x := range xs {
		if views[i], err = b.Wrap(x); err != nil {
			return nil, err
		}
	}
	s, sums := b.NewStream(kernels.StreamOptions{}), make([]float64, len(xs))
	b.SumSquares(s, sums, views)
	return sums, s.Sync(ctx)
}
