package model

import (
	"github.com/restar-rl/restar/kernels"
)

// Workspace is the scratch memory of passes; it grows to the largest pass it has seen. One goroutine uses it at a time. The zero
// Workspace is ready; a nil one means scratch memory of its own for one call.
type Workspace struct {
	// Threads bounds the threads of a pass; 0 means GOMAXPROCS. It changes no bit.
	Threads int
	// Recompute keeps only the input of every layer for Backward, which computes the rest again layer by layer: about a third more
	// work for an eighth of the memory (Chen et al. 2016, section 4). It changes no bit.
	Recompute bool

	backend kernels.Backend
	stream  kernels.Stream
	limit   int // Threads of stream
	floats  map[slot]kernels.View
	halves  map[slot]kernels.View
	ints    map[slot]kernels.View
	host    []float32
}

// Floats is the memory that the workspace holds, in float32.
func (w *Workspace) Floats() int {
	n := 0
	for _, v := range w.floats {
		n += v.Len
	}
	return n
}

// slot names a buffer; layer is 0 for those that layers share.
type slot struct {
	name  string
	layer int
}

// NewWorkspace returns an empty workspace.
func NewWorkspace() *Workspace { return &Workspace{} }

// open binds the workspace to a model's backend. Its stream, and so the backend's own scratch memory, lives until one fails.
func (w *Workspace) open(b kernels.Backend) {
	if w.backend != b {
		w.floats, w.halves, w.ints = map[slot]kernels.View{}, map[slot]kernels.View{}, map[slot]kernels.View{}
		w.backend, w.stream = b, nil
	}
	if w.stream == nil || w.limit != w.Threads {
		w.stream, w.limit = b.NewStream(kernels.StreamOptions{Parallelism: w.Threads}), w.Threads
	}
}

// pass is one forward, or forward and backward, over rows of tokens.
type pass struct {
	m     *Model
	ws    *Workspace
	s     kernels.Stream
	rows  int
	spans kernels.Spans
	ids   kernels.View
	pos   kernels.View
	err   error

	angles angleTable

	keep      bool // keep what the backward pass needs
	recompute bool // of that, keep only the layers' inputs
}

// f returns n floats of a named buffer.
func (p *pass) f(name string, layer, n int) kernels.View {
	return p.grow(p.ws.floats, p.m.backend.Floats, slot{name, layer}, n)
}

// operand returns a named buffer for an operand of products, rows of cols: floats, or rounded rows in bf16.
func (p *pass) operand(name string, layer, cols int) kernels.View {
	if p.m.precision == PrecisionFP32 {
		return p.f(name, layer, p.rows*cols)
	}
	return p.grow(p.ws.halves, p.m.backend.Halves, slot{name, layer}, p.m.backend.RoundedLen(p.rows, cols))
}

// scratchCache returns room for keys or values in the type that a KVCache of the model has.
func (p *pass) scratchCache(name string, n int) kernels.View {
	if p.m.precision == PrecisionFP32 {
		return p.f(name, 0, n)
	}
	return p.grow(p.ws.halves, p.m.backend.Halves, slot{name, 0}, n)
}

// rounded is x[rows,cols] as operand of products: itself, or a rounded copy in bf16.
func (p *pass) rounded(name string, x kernels.View, cols int) kernels.View {
	if p.m.precision == PrecisionFP32 {
		return x
	}
	y := p.operand(name, 0, cols)
	p.m.backend.RoundRows(p.s, y, x, p.rows, cols)
	return y
}

// slot is where a layer's activations lie: apart if they are kept, in one place for all layers otherwise.
func (p *pass) slot(layer int) int {
	if p.keep && !p.recompute {
		return layer
	}
	return 0
}

// again reports whether the backward pass computes the results of norms and SwiGLU again. In bf16, where they take half the memory of floats,
// they are kept as other activations are.
func (p *pass) again() bool { return p.m.precision == PrecisionFP32 || p.slot(1) == 0 }

// result is an operand that a layer computes row by row; see again.
func (p *pass) result(name string, layer, cols int) kernels.View {
	if p.again() {
		layer = 0
	}
	return p.operand(name, layer, cols)
}

// kept is f at a layer's slot.
func (p *pass) kept(name string, layer, n int) kernels.View { return p.f(name, p.slot(layer), n) }

func (p *pass) i(name string, n int) kernels.View {
	return p.grow(p.ws.ints, p.m.backend.Ints, slot{name, 0}, n)
}

func (p *pass) grow(m map[slot]kernels.View, alloc func(int) (kernels.View, error), k slot, n int) kernels.View {
	v, ok := m[k]
	if !ok || v.Len < n {
		spare := 0
		if ok {
			spare = n / 4 // it will grow again
		}
		var err error
		if v, err = alloc(n + spare); err != nil && p.err == nil {
			p.err = err
		}
		m[k] = v
	}
	if v.Len < n {
		return kernels.View{}
	}
	return v.Slice(0, n)
}
