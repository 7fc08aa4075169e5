package cpu

import (
	"fmt"
	"runtime"

	"github.com/restar-rl/restar/kernels"
)

// stream runs operations at once and keeps the scratch memory of its threads.
type stream struct {
	limit int
	err   error
	owner worker
	pool  pool

	// The operands of the operation under way, of its kind.
	tiles   tileProduct
	row     rowProduct
	store   storing
	attends attending
}

// worker is the scratch of one thread of a stream.
type worker struct {
	buffers [scratchSlots][]float32
	lens    []int32
}

// buffer returns n floats of scratch slot i, with undefined content.
func (w *worker) buffer(i, n int) []float32 {
	if cap(w.buffers[i]) < n {
		w.buffers[i] = make([]float32, n)
	}
	return w.buffers[i][:n]
}

func (w *worker) counts(n int) []int32 {
	if cap(w.lens) < n {
		w.lens = make([]int32, n)
	}
	return w.lens[:n]
}

func (s *stream) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("kernels/cpu: "+format, args...)
	}
}

// floats resolves a view that must hold exactly n floats.
func (s *stream) floats(op, name string, v kernels.View, n int) []float32 {
	m, ok := v.Mem.(*memory)
	if !ok || v.Len != n || v.Off < 0 || v.Off+v.Len > len(m.floats) {
		s.fail("%s: %s holds %d floats, want %d", op, name, v.Len, n)
		return nil
	}
	return m.floats[v.Off : v.Off+v.Len : v.Off+v.Len]
}

// atLeast resolves a view that must hold n floats or more.
func (s *stream) atLeast(op, name string, v kernels.View, n int) []float32 {
	if v.Len < n {
		s.fail("%s: %s holds %d floats, want at least %d", op, name, v.Len, n)
		return nil
	}
	return s.floats(op, name, v, v.Len)
}

// ints resolves a view that must hold exactly n ints.
func (s *stream) ints(op, name string, v kernels.View, n int) []int32 {
	m, ok := v.Mem.(*memory)
	if !ok || v.Len != n || v.Off < 0 || v.Off+v.Len > len(m.ints) {
		s.fail("%s: %s holds %d ints, want %d", op, name, v.Len, n)
		return nil
	}
	return m.ints[v.Off : v.Off+v.Len : v.Off+v.Len]
}

func (s *stream) threads() int {
	n := runtime.GOMAXPROCS(0)
	if s.limit > 0 {
		n = min(n, s.limit)
	}
	return n
}

// worker is the stream's first thread, whose scratch memory operations may use for what their items share.
func (s *stream) worker() *worker { return &s.owner }

// parallel runs f for every item in [0, n) over the stream's threads. Items must own what they write.
func (s *stream) parallel(n int, f func(w *worker, item int)) { s.do(job{items: n, each: f}) }

// rows cuts [0, n) into chunks and runs f for each.
func (s *stream) rows(n, chunk int, f func(w *worker, from, to int)) {
	s.do(job{items: (n + chunk - 1) / chunk, n: n, chunk: chunk, span: f})
}

func (s *stream) do(j job) {
	p := 1
	if j.items > 1 {
		p = min(s.threads(), j.items)
	}
	if p > 1 {
		s.pool.do(&s.owner, p, j)
		return
	}
	for i := range j.items {
		j.run(&s.owner, i)
	}
}
