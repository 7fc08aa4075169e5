package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/restar-rl/restar/workers/sandbox/service/wire"
)

// decodeFactor is what a body costs while it is read and decoded: its bytes, and the strings made of them.
const decodeFactor = 2

// chunkBytes is charged ahead for a body of unknown length.
const chunkBytes = 256 << 10

// errTooLarge refuses a body.
var errTooLarge = errors.New("the body is too large")

const (
	bodyTimeout  = time.Minute // for a client to send its body, whose bytes are charged meanwhile
	writeTimeout = time.Minute // for a client to take an answer, or a line of one
)

// read reads a whole body within the budget. The caller gives back the bytes charged, also after an error.
func (s *Service) read(w http.ResponseWriter, r *http.Request) (body []byte, charged int64, err error) {
	d := s.desk
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(bodyTimeout)) // a writer that has no deadlines is not a connection
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	if free, short := d.watch.short(); short {
		return nil, 0, &refusal{fmt.Sprintf("the machine has %d MiB of memory left, %d are kept free", free>>20, d.opt.MinFree>>20), time.Second}
	}
	n := r.ContentLength
	if n > d.opt.MaxBody {
		return nil, 0, errTooLarge
	}
	if n >= 0 {
		if !d.budget.take(decodeFactor * n) {
			return nil, 0, s.full()
		}
		body = make([]byte, n)
		_, err = io.ReadFull(r.Body, body)
		return body, decodeFactor * n, err
	}
	for err == nil {
		if !d.budget.take(decodeFactor * chunkBytes) {
			return nil, charged, s.full()
		}
		charged += decodeFactor * chunkBytes
		at := len(body)
		body = append(body, make([]byte, chunkBytes)...)
		var got int
		got, err = io.ReadFull(r.Body, body[at:])
		body = body[:at+got]
		if int64(len(body)) > d.opt.MaxBody {
			return nil, charged, errTooLarge
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return body, charged, err
}

func (s *Service) full() *refusal {
	d := s.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	return &refusal{fmt.Sprintf("%d MiB are held for clients, the limit is %d", d.budget.held.Load()>>20, d.budget.limit>>20), d.wait(d.queued())}
}

// retryAfter rounds a wait up to the whole seconds of the header, at least one, at most thirty: load changes faster than that.
func retryAfter(d time.Duration) int {
	return int(min(max((d+time.Second-1)/time.Second, 1), 30))
}

// fail answers a request that gets no result.
func (s *Service) fail(w http.ResponseWriter, err error) {
	var full *refusal
	code := http.StatusBadRequest
	switch {
	case errors.As(err, &full):
		code = http.StatusTooManyRequests
		if s.desk.isDraining() {
			code = http.StatusServiceUnavailable
		}
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter(full.after)))
		w.Header().Set("Connection", "close") // the body may be unread
		s.meters.refused.WithLabelValues(strconv.Itoa(code)).Inc()
	case errors.Is(err, errTooLarge):
		code = http.StatusRequestEntityTooLarge
		w.Header().Set("Connection", "close")
		err = fmt.Errorf("%w, the limit is %d bytes", err, s.desk.opt.MaxBody)
	case errors.Is(err, errOtherProgram), errors.Is(err, errTaken):
		code = http.StatusConflict
	}
	reply(w, code, wire.Error{Error: err.Error()})
}

// patience gives the client a while to take what is written next.
func patience(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
}

// reply writes one JSON value.
func reply(w http.ResponseWriter, code int, v any) {
	patience(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a client that went away is seen by its request's context
}
