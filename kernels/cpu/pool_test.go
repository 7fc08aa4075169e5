package cpu

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels"
)

func TestEveryItemRunsOnceWithAWorkerOfItsOwn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, limit := range []int{0, 1, 2, 3, 4} {
		s := &stream{limit: limit}
		for job := range 3000 {
			n := job % 37
			ran := make([]int32, n)
			var busy sync.Map
			s.parallel(n, func(w *worker, i int) {
				if _, other := busy.LoadOrStore(w, i); other {
					t.Error("two items have one worker at the same time")
				}
				atomic.AddInt32(&ran[i], 1)
				busy.Delete(w)
			})
			for i, k := range ran {
				if k != 1 {
					t.Fatalf("limit %d, job of %d items: item %d ran %d times before the job ended", limit, n, i, k)
				}
			}
		}
	}
}

// helping counts goroutines of pools.
func helping() int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), ".(*pool).help(")
}

func TestAnIdleStreamHasNoGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	s := &stream{}
	for deadline := time.Now().Add(20 * time.Second); helping() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("a busy stream never had a helper")
		}
		s.parallel(64, func(*worker, int) { pause(100) })
	}
	for deadline := time.Now().Add(20 * time.Second); helping() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("an idle stream still has %d helpers", helping())
		}
	}
}

func TestAStreamUsesNoMoreThreadsThanItMay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s := &stream{}
	var now, top atomic.Int32
	run := func() {
		s.parallel(16, func(*worker, int) {
			n := now.Add(1)
			for old := top.Load(); n > old && !top.CompareAndSwap(old, n); old = top.Load() {
			}
			runtime.Gosched()
			now.Add(-1)
		})
	}
	for deadline := time.Now().Add(20 * time.Second); top.Load() < 3; run() { // a loaded machine may be slow to start them
		if time.Now().After(deadline) {
			t.Fatalf("%d threads at once of 4 in 20 s", top.Load())
		}
	}
	for _, limit := range []int32{4, 2, 1} { // helpers of the wider jobs may still be there
		if s.limit = int(limit); limit == 1 {
			s.limit = 0
			runtime.GOMAXPROCS(1)
		}
		top.Store(0)
		for range 300 {
			run()
		}
		if n := top.Load(); n > limit {
			t.Errorf("%d threads at once, want %d at most", n, limit)
		}
	}
}

// BenchmarkJob is the cost of handing two items to two threads, and of an operation of one item.
func BenchmarkJob(b *testing.B) {
	bk := &Backend{}
	for _, n := range []int{1, 2, 16} {
		b.Run(map[int]string{1: "alone", 2: "two", 16: "sixteen"}[n], func(b *testing.B) {
			s := bk.NewStream(kernels.StreamOptions{Parallelism: 2}).(*stream)
			for b.Loop() {
				s.parallel(n, func(*worker, int) {})
			}
		})
	}
}
