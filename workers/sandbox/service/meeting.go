package service

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
	"go.opentelemetry.io/otel/propagation"
)

// meeting is one HTTP request of a client of code-judge, and the calls made for it.
type meeting struct {
	*Service
	ctx     context.Context // ends when the client goes away or has to be answered
	stop    context.CancelFunc
	trace   context.Context
	rollout string
	startBy time.Time

	mu   sync.Mutex
	held []*ticket // ended, and not yet delivered
}

func (s *Service) meeting(r *http.Request, startBy, answerBy time.Time) *meeting {
	m := &meeting{Service: s, startBy: startBy, rollout: "judge " + r.RemoteAddr, ctx: r.Context(), stop: func() {}}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		m.rollout = "judge " + host
	}
	m.trace = propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	if !answerBy.IsZero() {
		m.ctx, m.stop = context.WithDeadline(r.Context(), answerBy)
	}
	return m
}

// all runs the submissions of a batch and returns their results in order.
func (m *meeting) all(subs []submission, verdictOnly bool) []any {
	results := make([]any, len(subs))
	window := make(chan struct{}, batchWindow)
	var wg sync.WaitGroup
	for i, sub := range subs {
		window <- struct{}{}
		wg.Go(func() {
			results[i] = face(m.run(sub), verdictOnly)
			<-window
		})
	}
	wg.Wait()
	return results
}

// run executes one submission. A call left running by an earlier request of a client that gave up is taken over.
func (m *meeting) run(sub submission) judgeResult {
	began := time.Now()
	switch sub.kind {
	case "math":
		return judgeResult{SubID: sub.id, Reason: internalError} // as code-judge, which has no executor for it
	case "cpp":
		return judgeResult{SubID: sub.id, Reason: invalidInput}
	}
	t := m.ticketOf(sub)
	if t == nil {
		return judgeResult{SubID: sub.id, Cost: time.Since(began).Seconds(), Reason: queueTimeout}
	}
	select {
	case <-t.done:
		m.hold(t)
		return m.answer(sub, t.outcome)
	case <-m.ctx.Done():
		m.desk.orphan(t)
		return judgeResult{SubID: sub.id, Cost: time.Since(began).Seconds(), Reason: queueTimeout}
	}
}

// ticketOf finds or submits the call of a submission; nil when there is no room within the request's time.
func (m *meeting) ticketOf(sub submission) *ticket {
	l := m.desk.opt.Judge.Limits
	t := &ticket{
		rollout: m.rollout, ctx: m.trace, startBy: m.startBy, digest: digestOf(sub.solution, sub.input),
		call: sandbox.Call{ID: sub.id, Code: sub.solution + scriptEnd, Stdin: sub.input, Limits: l},
	}
	t.call.Seed = binary.LittleEndian.Uint64(t.digest[:]) // there is no address: different programs draw differently, a repeated one the same
	t.class, _ = classOf(l)                               // checked when the service was made
	if sub.named {
		t.key = "judge " + sub.id
	} else if left := m.desk.adopt(t.digest); left != nil {
		return left
	}
	for {
		known, _, err := m.admit(t)
		switch {
		case err == nil:
			return known
		case t.key != "" && isOther(err):
			t.key = "" // ids of code-judge are labels: two programs may share one
			continue
		}
		if !m.pause(err) {
			return nil
		}
	}
}

// pause waits until there may be room.
func (m *meeting) pause(err error) bool {
	const step = 250 * time.Millisecond
	if m.desk.isDraining() || time.Now().Add(step).After(m.startBy) {
		return false
	}
	select {
	case <-m.ctx.Done():
		return false
	case <-time.After(step):
		return true
	}
}

func (m *meeting) hold(t *ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = append(m.held, t)
}

// close ends the meeting: what the client has received is done with, and what it has not is kept for its next try.
func (m *meeting) close(r *http.Request) {
	for _, t := range m.held {
		if r.Context().Err() != nil {
			m.desk.orphan(t)
		} else {
			m.desk.collect(t)
		}
	}
}

// answer writes an outcome as code-judge would.
func (m *meeting) answer(sub submission, o outcome) judgeResult {
	res := judgeResult{SubID: sub.id, Cost: o.result.Wall.Seconds()}
	switch o.status {
	case wire.InfraError:
		return judgeResult{SubID: sub.id, Reason: internalError}
	case wire.Rejected, wire.Cancelled:
		res.Cost, res.Reason = o.queue.Seconds(), queueTimeout
		return res
	case string(sandbox.Timeout):
		res.Reason = workerTimeout
	}
	stdout, stderr := o.result.Stdout, o.result.Stderr
	if o.status == string(sandbox.Timeout) {
		stdout += "Suicide from timeout.\n" // its alarm handler prints this before it kills the program
	}
	res.RunSuccess = o.status == string(sandbox.Success)
	res.Success = res.RunSuccess && (sub.expectedOutput == nil || stripped(stdout) == stripped(*sub.expectedOutput))
	n := m.desk.opt.Judge.StreamChars
	stdout, stderr = head(stdout, n), head(stderr, n)
	res.Stdout, res.Stderr = &stdout, &stderr
	return res
}
