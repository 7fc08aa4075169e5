package service

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
	"go.opentelemetry.io/otel/propagation"
)

// maxKey bounds an idempotency key, which is held as long as its result.
const maxKey = 256

// execute serves one native call.
func (s *Service) execute(w http.ResponseWriter, r *http.Request) {
	body, charged, err := s.read(w, r)
	var q wire.Request
	if err == nil {
		q, err = request(body)
	}
	var t *ticket
	if err == nil {
		t, err = s.ticket(r, q)
	}
	s.serve(w, r, t, charged, err)
}

// serve runs a ticket and answers. It gives back what was charged for the request's body.
func (s *Service) serve(w http.ResponseWriter, r *http.Request, t *ticket, charged int64, err error) {
	joined := false
	if err == nil {
		t, joined, err = s.admit(t)
	}
	s.desk.budget.give(charged)
	if err != nil {
		s.fail(w, err)
		return
	}
	id := strings.TrimPrefix(t.key, nativePrefix)
	if o, ok := s.desk.await(r.Context(), t); ok { // otherwise the client went away
		reply(w, http.StatusOK, s.result(id, o, joined))
	}
}

// batch serves native calls whose results are sent as they end, one a line.
func (s *Service) batch(w http.ResponseWriter, r *http.Request) {
	body, charged, err := s.read(w, r)
	var b wire.Batch
	if err == nil {
		b, err = batchOf(body)
	}
	if err == nil && len(b.Calls) == 0 {
		err = errors.New("calls is empty, expected at least one call")
	}
	tickets := make([]*ticket, len(b.Calls))
	for i := 0; err == nil && i < len(b.Calls); i++ {
		if tickets[i], err = s.ticket(r, b.Calls[i]); err != nil {
			err = fmt.Errorf("calls[%d]: %w", i, err)
		}
	}
	if err != nil {
		s.desk.budget.give(charged)
		s.fail(w, err)
		return
	}
	results := make(chan wire.Result, len(tickets))
	for i, t := range tickets {
		t, joined, err := s.admit(t)
		if err != nil {
			results <- s.refused(b.Calls[i].CallID, err)
			continue
		}
		id := b.Calls[i].CallID
		go func() {
			o, _ := s.desk.await(r.Context(), t) // a client that went away reads nothing
			results <- s.result(id, o, joined)
		}()
	}
	s.desk.budget.give(charged)
	stream(w, results, len(tickets))
}

// stream writes n results as they come.
func stream(w http.ResponseWriter, results <-chan wire.Result, n int) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Accel-Buffering", "no")
	out, e := http.NewResponseController(w), json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = out.Flush()
	for range n {
		r := <-results
		patience(w)
		_ = e.Encode(r)
		if len(results) == 0 {
			_ = out.Flush()
		}
	}
}

// refused is the result of a batch's call that was not accepted.
func (s *Service) refused(id string, err error) wire.Result {
	res := wire.Result{CallID: id, Status: wire.Rejected, Reason: err.Error(), Node: s.desk.opt.Node}
	var full *refusal
	if errors.As(err, &full) {
		res.Retryable, res.RetryAfterMs = true, int64(retryAfter(full.after))*1000
	}
	return res
}

// cancelCall ends a call by its id.
func (s *Service) cancelCall(w http.ResponseWriter, r *http.Request) {
	if !s.desk.cancel(nativeKey(r.PathValue("id"))) {
		reply(w, http.StatusNotFound, wire.Error{Error: "no call with this id waits or runs here"})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// nativeKey keeps native ids apart from those of code-judge's face.
func nativeKey(id string) string {
	if id == "" {
		return ""
	}
	return nativePrefix + id
}

const nativePrefix = "native "

// written is a request as a client writes it. The empty program is a program; a request without one is a mistake.
type written struct {
	wire.Request
	Code *string `json:"code"`
}

func (q written) request() (wire.Request, error) {
	if q.Code == nil {
		return wire.Request{}, errors.New(`the key "code" is missing, expected the text of a program`)
	}
	q.Request.Code = *q.Code
	return q.Request, nil
}

// request decodes the request of one call.
func request(body []byte) (wire.Request, error) {
	var q written
	if err := strict(body, &q); err != nil {
		return wire.Request{}, err
	}
	return q.request()
}

// batchOf decodes the requests of a batch.
func batchOf(body []byte) (wire.Batch, error) {
	var all struct {
		Calls []written `json:"calls"`
	}
	if err := strict(body, &all); err != nil {
		return wire.Batch{}, err
	}
	b := wire.Batch{Calls: make([]wire.Request, len(all.Calls))}
	for i, q := range all.Calls {
		var err error
		if b.Calls[i], err = q.request(); err != nil {
			return wire.Batch{}, fmt.Errorf("calls[%d]: %w", i, err)
		}
	}
	return b, nil
}

// strict decodes one JSON value and nothing else.
func strict(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("the body is no request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body holds more than one JSON value, expected one")
	}
	return nil
}

// ticket checks a native request.
func (s *Service) ticket(r *http.Request, q wire.Request) (*ticket, error) {
	if len(q.CallID) > maxKey || len(q.RolloutID) > maxKey {
		return nil, fmt.Errorf("call_id and rollout_id have %d and %d bytes, expected at most %d", len(q.CallID), len(q.RolloutID), maxKey)
	}
	if q.DeadlineMs < 0 {
		return nil, fmt.Errorf("deadline_ms is %d, expected 0 (none) or more", q.DeadlineMs)
	}
	if err := s.isolates(q.Isolation); err != nil {
		return nil, err
	}
	l, err := s.limits(q.Limits)
	if err != nil {
		return nil, err
	}
	c, err := classOf(l)
	if err != nil {
		return nil, err
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	t := &ticket{
		key: nativeKey(strings.Clone(q.CallID)), rollout: q.RolloutID, class: c, ctx: ctx,
		digest: digestOf(q.Code, q.Stdin, fmt.Sprint(q.Seed, l)),
		call:   sandbox.Call{ID: q.CallID, Code: q.Code, Stdin: q.Stdin, Seed: q.Seed, Limits: l},
	}
	if q.DeadlineMs > 0 {
		t.endBy = time.Now().Add(time.Duration(q.DeadlineMs) * time.Millisecond)
		t.startBy = t.endBy
	}
	return t, nil
}

// isolates refuses calls that want more isolation than the node gives.
func (s *Service) isolates(want string) error {
	has := s.desk.opt.Tier
	switch {
	case want == "" || want == string(has) || want == string(sandbox.TierB) && has == sandbox.TierA:
		return nil
	case want != string(sandbox.TierA) && want != string(sandbox.TierB):
		return fmt.Errorf("isolation is %q, expected A or B", want)
	}
	return fmt.Errorf("the call wants isolation %s, this node gives %q: `restar sandbox doctor` on it shows every layer", want, has)
}

// admit charges a ticket and submits it.
func (s *Service) admit(t *ticket) (*ticket, bool, error) {
	t.bytes = int64(len(t.call.Code)+len(t.call.Stdin)) + ticketBytes
	if !s.desk.budget.take(t.bytes) {
		return nil, false, s.full()
	}
	return s.desk.submit(t)
}

// limits completes and checks the limits of a native request.
func (s *Service) limits(q wire.Limits) (sandbox.Limits, error) {
	l := sandbox.Limits{CPU: time.Duration(q.CPUMs) * time.Millisecond, Wall: time.Duration(q.WallMs) * time.Millisecond,
		MemoryMB: q.MemoryMB, Pids: q.Pids, Cores: q.Cores, TmpKB: q.TmpKB, OutputKB: q.OutputKB}
	if q.Class != "" {
		c, err := parseClass(q.Class)
		if err != nil {
			return l, err
		}
		l = complete(l, sandbox.Limits{CPU: c.limit(), Wall: max(c.limit(), l.CPU)})
		if l.CPU > c.limit() || l.Wall > wallFactor*c.limit() {
			return l, fmt.Errorf("limits are %v CPU and %v wall, expected at most %v and %v in class %s", l.CPU, l.Wall, c.limit(), wallFactor*c.limit(), c)
		}
	}
	if l.CPU > 0 && l.Wall == 0 {
		l.Wall = max(l.CPU, s.desk.opt.Limits.Wall)
	}
	l = complete(l, s.desk.opt.Limits)
	return l, l.Validate()
}

// result writes an outcome for the wire.
func (s *Service) result(id string, o outcome, joined bool) wire.Result {
	r := o.result
	return wire.Result{
		CallID: id, Status: o.status, Reason: o.reason, ExitCode: r.ExitCode, Signal: r.Signal, Stdout: r.Stdout, Stderr: r.Stderr,
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated, StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes,
		Timing: wire.Timing{QueueMs: ms(o.queue), RunMs: ms(cmp.Or(r.Wall, o.run)), CPUMs: ms(r.CPU), InitMs: ms(r.InitCPU)},
		PeakKB: r.PeakKB, PageFaults: r.Faults, Profile: r.Profile, SessionEnded: r.SessionEnded,
		Retryable: o.retry, Attempts: o.attempts, Joined: joined, Node: s.desk.opt.Node, Tier: string(s.desk.opt.Tier),
	}
}
