package model

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/kernels/philox"
)

// New makes a model with initial weights: norms 1, biases 0, matrices normal with the configured deviation, and those that write into the
// residual stream divided by sqrt(2*layers) (Radford et al. 2019, section 2.3). Each weight has its own random address.
func New(cfg Config, seed uint64, opts ...Option) (*Model, error) {
	b, err := host()
	if err != nil {
		return nil, err
	}
	return newModel(b, cfg, seed, opts...)
}

func newModel(b kernels.Backend, cfg Config, seed uint64, opts ...Option) (*Model, error) {
	m, err := allocate(b, cfg, opts...)
	if err != nil {
		return nil, err
	}
	key := philox.NewKey(seed)
	residual := cfg.InitializerRange / math.Sqrt(float64(2*cfg.Layers))
	for i, p := range m.params {
		switch {
		case strings.HasSuffix(p.Name, ".bias"):
		case len(p.Shape) == 1:
			for j := range p.Data {
				p.Data[j] = 1
			}
		case strings.HasSuffix(p.Name, "o_proj.weight") || strings.HasSuffix(p.Name, "down_proj.weight"):
			fillNormal(p.Data, key, i, residual)
		default:
			fillNormal(p.Data, key, i, cfg.InitializerRange)
		}
	}
	m.WeightsChanged()
	return m, nil
}

// fillItem is the number of weights that a thread draws at once: some milliseconds, and whole random blocks.
const fillItem = 1 << 16

// fillNormal draws the weights of one tensor on all threads.
func fillNormal(data []float32, key philox.Key, ordinal int, deviation float64) {
	items := (len(data) + fillItem - 1) / fillItem
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(items, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < items; i = int(next.Add(1)) - 1 {
				fillRange(data, i*fillItem, min(len(data), (i+1)*fillItem), key, ordinal, deviation)
			}
		})
	}
	wg.Wait()
}

// fillRange draws data[from:to] by Box and Muller: each random block gives four numbers, and from begins one.
func fillRange(data []float32, from, to int, key philox.Key, ordinal int, deviation float64) {
	a := philox.Address{Purpose: philox.Init, Ordinal: ordinal}
	for i := from; i < to; i += 4 {
		w := key.At(a.WithToken(i / 4))
		var z [4]float64
		for j := 0; j < 4; j += 2 {
			r := math.Sqrt(-2 * math.Log((float64(w[j])+0.5)/(1<<32)))
			sin, cos := math.Sincos(2 * math.Pi * float64(w[j+1]) / (1 << 32))
			z[j], z[j+1] = float64(r*cos), float64(r*sin)
		}
		for j := range min(4, to-i) {
			data[i+j] = float32(deviation * z[j])
		}
	}
}
