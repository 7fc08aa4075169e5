package cpu

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Helpers wait for work in two stages, because a decoder at batch 1 runs hundreds of short operations a token: a goroutine that has to be
// woken costs as much as one of them. A helper that has found nothing for spinRounds rounds ends, so an idle stream has no
// goroutines, and neither has one that nobody refers to any more.
const (
	pausesPerRound = 16  // about a third of a microsecond
	spinRounds     = 200 // some 60 us: longer than what a token's serial operations take, shorter than a scheduler's time slice
	yieldEvery     = 16  // rounds after which a spinning goroutine lets others run

	// lateCheck is how often the owner of a job looks after a helper that has not ended its item in the time of spinRounds: its thread may have
	// lost its processor to another process, which spinning would only prolong.
	lateCheck = 20 * time.Microsecond
)

// pool runs the items of one job at a time on the caller and on helpers.
//
// A job is open from publish to close. A helper counts itself in before it looks whether the job is open, and the owner closes the job
// before it looks whether anybody is counted in; so either the helper stays out or the owner waits for it, and job never
// changes under a helper. No job needs a helper: whoever is there takes the next item.
type pool struct {
	open    atomic.Uint64 // number of the open job, 0 if none
	inside  atomic.Int32  // helpers that may be reading job
	next    atomic.Int64  // next item of the job
	jobs    uint64        // jobs so far; the owner's
	width   int           // helpers that the job may use
	job     job
	helpers []*helper
}

// job is items of work: op or each runs one of them, or span runs the chunk of n elements that is an item. An operation that lies in its
// stream and a job of chunks spare the closures of which a token would make hundreds.
type job struct {
	items    int
	op       operation
	each     func(w *worker, item int)
	n, chunk int
	span     func(w *worker, from, to int)
}

// operation is work with its operands.
type operation interface{ run(w *worker, item int) }

func (j *job) run(w *worker, item int) {
	switch {
	case j.op != nil:
		j.op.run(w, item)
	case j.span != nil:
		j.span(w, item*j.chunk, min(j.n, (item+1)*j.chunk))
	default:
		j.each(w, item)
	}
}

// helper is a worker with a goroutine that comes and goes.
type helper struct {
	worker
	number int
	alive  atomic.Bool
}

// do runs a job on the owner's worker and up to p-1 helpers, and returns when all of its items have run.
func (q *pool) do(owner *worker, p int, j job) {
	for len(q.helpers) < p-1 {
		q.helpers = append(q.helpers, &helper{number: len(q.helpers)})
	}
	q.job, q.width = j, p-1
	q.next.Store(0)
	q.jobs++
	q.open.Store(q.jobs)
	for _, h := range q.helpers[:p-1] {
		if !h.alive.Load() {
			h.alive.Store(true)
			go q.help(h)
		}
	}
	q.work(owner)
	q.open.Store(0)
	for i := 0; q.inside.Load() > 0; i++ {
		if i < spinRounds {
			spin(i)
		} else {
			time.Sleep(lateCheck)
		}
	}
	q.job = job{}
}

// work takes items until none is left.
func (q *pool) work(w *worker) {
	for i := int(q.next.Add(1)) - 1; i < q.job.items; i = int(q.next.Add(1)) - 1 {
		q.job.run(w, i)
	}
}

// help joins one job after another until none has come for a while.
func (q *pool) help(h *helper) {
	defer h.alive.Store(false)
	last := uint64(0)
	for i := 0; i < spinRounds; i++ {
		if open := q.open.Load(); open != 0 && open != last {
			q.inside.Add(1)
			if q.open.Load() == open {
				last = open
				if h.number < q.width {
					q.work(&h.worker)
					i = 0
				}
			}
			q.inside.Add(-1)
			continue
		}
		spin(i)
	}
}

// spin waits a moment, and now and then gives other goroutines the processor.
func spin(round int) {
	if round%yieldEvery == yieldEvery-1 {
		runtime.Gosched()
		return
	}
	pause(pausesPerRound)
}
