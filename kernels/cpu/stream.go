package cpu

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/restar-rl/restar/kernels"
)

// stream runs operations at once and keeps the scratch memory of its threads.
type stream struct {
	limit   int
	err     error
	workers []*worker
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
func (s *stream) worker() *worker {
	if len(s.workers) == 0 {
		s.workers = append(s.workers, &worker{})
	}
	return s.workers[0]
}

// parallel runs f for every item in [0, n) over the stream's threads. Items must own what they write.
func (s *stream) parallel(n int, f func(w *worker, item int)) {
	p := min(s.threads(), n)
	s.worker()
	for len(s.workers) < p {
		s.workers = append(s.workers, &worker{})
	}
	if p <= 1 {
		for i := range n {
			f(s.workers[0], i)
		}
		return
	}
	var next atomic.Int64
	loop := func(w *worker) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			f(w, i)
		}
	}
	var wg sync.WaitGroup
	for _, w := range s.workers[1:p] {
		wg.Go(func() { loop(w) })
	}
	loop(s.workers[0])
	wg.Wait()
}

// rows cuts [0, n) into chunks and runs f for each.
func (s *stream) rows(n, chunk int, f func(w *worker, from, to int)) {
	s.parallel((n+chunk-1)/chunk, func(w *worker, i int) { f(w, i*chunk, min(n, (i+1)*chunk)) })
}
