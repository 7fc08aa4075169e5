package serve

import (
	"math"
	"net/http"
	"sync"
	"time"
)

// queue counts the answers under way and refuses more than may wait for their first token.
type queue struct {
	most int
	now  func() time.Time

	mu      sync.Mutex
	waiting int
	running int
	latest  time.Duration // what the last answer to begin had waited
}

// longestAdvice bounds Retry-After: who waits longer may as well ask.
const longestAdvice = 60

// admit takes n answers in, or says when to try again.
func (q *queue) admit(n int) ([]*place, error) {
	if n > q.most {
		return nil, badRequest("", "the request asks for %d answers, at most %d may wait here at once; ask for fewer", n, q.most)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting+n > q.most {
		after := min(max(int(math.Ceil(q.latest.Seconds())), 1), longestAdvice)
		return nil, &apiError{status: http.StatusTooManyRequests, code: "queue_full", retry: after,
			message: "too many answers wait for their first token already; try again later"}
	}
	q.waiting += n
	places := make([]*place, n)
	for i := range places {
		places[i] = &place{q: q, since: q.now()}
	}
	return places, nil
}

func (q *queue) counts() (waiting, running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting, q.running
}

// place is one answer's in the queue.
type place struct {
	q      *queue
	since  time.Time
	begun  bool
	closed bool
}

// begin counts the answer as running and returns what it waited; later calls return 0 and false.
func (p *place) begin() (time.Duration, bool) {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	if p.begun || p.closed {
		return 0, false
	}
	p.begun = true
	p.q.waiting--
	p.q.running++
	p.q.latest = p.q.now().Sub(p.since)
	return p.q.latest, true
}

// leave ends the answer's part.
func (p *place) leave() {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.begun {
		p.q.running--
	} else {
		p.q.waiting--
	}
}
