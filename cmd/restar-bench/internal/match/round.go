package match

import (
	"context"
	"fmt"
	"time"
)

// Entry is one way to play a contestant: a request, asked again in every round. Ways of the same process never run at once.
type Entry struct {
	Process *Process
	Request string
	Rounds  int    // after the first one, if the entry plays fewer than the rest; 0 plays all
	Best    Answer // of all rounds but the first, which warms up
	Failed  error  // why the entry plays no more
	answers int
}

// Measured reports whether the entry has a best answer.
func (e *Entry) Measured() bool { return e.answers > 0 }

// Rules bound a match.
type Rules struct {
	Rounds int           // after the one that warms up
	Budget time.Duration // no round begins after it, once each entry has answered twice
	Wait   time.Duration // for one answer
	Slower float64       // an entry that takes this many times as long as another of its process, once warm, is dropped; 0 is off
}

// pause lets threads of the last contestant that still spin go to sleep.
const pause = 100 * time.Millisecond

// Play lets entries take turns. Each keeps its shortest time and its highest rate; one that fails plays no more.
func Play(ctx context.Context, entries []*Entry, r Rules) error {
	begin := time.Now()
	for round := 0; round <= r.Rounds; round++ {
		if round > 2 && time.Since(begin) > r.Budget {
			return nil
		}
		for _, e := range entries {
			if e.Failed != nil || e.Rounds > 0 && round > e.Rounds {
				continue
			}
			a, err := e.Process.Ask(ctx, e.Request, r.Wait)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				e.Failed = err
				continue
			}
			e.take(round, a)
			time.Sleep(pause)
		}
		if round == 1 && r.Slower > 0 {
			drop(entries, r.Slower)
		}
	}
	return nil
}

func (e *Entry) take(round int, a Answer) {
	if round == 0 {
		return
	}
	if e.answers++; e.answers > 1 {
		a.Seconds, a.Rate = min(a.Seconds, e.Best.Seconds), max(a.Rate, e.Best.Rate)
	}
	e.Best = a
}

// drop ends entries that are much slower than another of their process.
func drop(entries []*Entry, slower float64) {
	for _, e := range entries {
		for _, o := range entries {
			if o != e && o.Process == e.Process && o.Measured() && e.Best.Seconds > slower*o.Best.Seconds {
				e.Failed = fmt.Errorf("%s takes %.1f times as long with request %q as with %q", e.Process.Name, e.Best.Seconds/o.Best.Seconds, e.Request, o.Request)
			}
		}
	}
}

// Fastest is the measured entry with the shortest time, or nil.
func Fastest(entries ...*Entry) *Entry {
	var best *Entry
	for _, e := range entries {
		if e.Measured() && (best == nil || e.Best.Seconds < best.Best.Seconds) {
			best = e
		}
	}
	return best
}

// Failure is why none of some entries was measured.
func Failure(entries ...*Entry) error {
	for _, e := range entries {
		if e.Failed != nil && !e.Measured() {
			return e.Failed
		}
	}
	return nil
}
