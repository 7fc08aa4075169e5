package engine

import (
	"math"
	"runtime"
	"sync"

	"github.com/restar-rl/restar/workers/model"
)

// draw is one sampled id with the log-prob (nats) and entropy (nats) of the distribution it was drawn from.
type draw struct {
	id            int32
	logp, entropy float32
	finite        bool // false: the row was not a distribution and nothing was drawn
}

// drawToken draws an id from softmax(logits/temperature) with u in [0,1) by inversion of the cumulative distribution in id order, or takes
// the largest logit (the smaller id of equals) at temperature 0, whose log-prob and entropy are those of softmax(logits).
func drawToken(logits []float32, temperature float32, u float64) draw {
	row := logits
	if temperature != 0 && temperature != 1 {
		row = make([]float32, len(logits))
		for i, l := range logits {
			row[i] = l / temperature
		}
	}
	lse, entropy := model.LogSoftmaxRow(row)
	if !finite(lse) || !finite(entropy) {
		return draw{}
	}
	id := argmax(row)
	if temperature != 0 {
		id = invert(row, lse, u, id)
	}
	d := draw{id: int32(id), logp: row[id] - lse, entropy: entropy}
	d.finite = finite(d.logp)
	return d
}

// invert returns the first id whose cumulative probability exceeds u. The probabilities sum to 1 only up to rounding; should u lie in what
// is missing, the most likely id takes it.
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

func finite(x float32) bool {
	return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0)
}

// parallel calls f(0..n-1) on up to GOMAXPROCS goroutines.
func parallel(n int, f func(int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}
