package service

import (
	"net/http"
	"time"

	"github.com/google/uuid"
)

// submission is one program in code-judge's format.
type submission struct {
	id             string // made up when the client gives none
	named          bool   // the client gave the id
	kind           string // python, cpp or math
	solution       string
	input          string
	expectedOutput *string
}

// judgeResult is code-judge's result, in the order of its fields.
type judgeResult struct {
	SubID      string  `json:"sub_id"`
	Success    bool    `json:"success"`
	RunSuccess bool    `json:"run_success"`
	Cost       float64 `json:"cost"` // seconds
	Stdout     *string `json:"stdout"`
	Stderr     *string `json:"stderr"`
	Reason     string  `json:"reason"`
}

// Reasons of code-judge beside "".
const (
	internalError = "internal_error"
	workerTimeout = "worker_timeout"
	queueTimeout  = "queue_timeout"
	invalidInput  = "invalid_input"
)

// scriptEnd makes a program end with a statement: code-judge runs files, which echo nothing, and the sandbox would echo the
// value of a last expression. It too appends lines of its own.
const scriptEnd = "\n\npass\n"

// batchWindow is how many calls of one batch wait at once: enough to keep a node busy, so that a batch of thousands does not
// fill the queue.
const batchWindow = 256

// judgeOne serves /run and /judge.
func (s *Service) judgeOne(verdictOnly bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, charged, err := s.read(w, r)
		defer s.desk.budget.give(charged)
		if err != nil {
			s.fail(w, err)
			return
		}
		sub, invalid := parseSubmission(body)
		if invalid != nil {
			unprocessable(w, invalid)
			return
		}
		m := s.meeting(r, time.Now().Add(s.desk.opt.Judge.QueueLife), time.Time{})
		res := m.run(sub)
		replyJudge(w, face(res, verdictOnly))
		m.close(r)
	}
}

// judgeBatch serves the four batch endpoints.
func (s *Service) judgeBatch(verdictOnly, long bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, charged, err := s.read(w, r)
		defer s.desk.budget.give(charged)
		if err != nil {
			s.fail(w, err)
			return
		}
		id, subs, invalid := parseBatch(body)
		if invalid != nil {
			unprocessable(w, invalid)
			return
		}
		startBy, answerBy := time.Now().Add(s.desk.opt.Judge.QueueLife), time.Time{}
		if long {
			answerBy = time.Now().Add(s.desk.opt.Judge.BatchDeadline)
			startBy = answerBy
		}
		m := s.meeting(r, startBy, answerBy)
		defer m.stop()
		replyJudge(w, struct {
			SubID   string `json:"sub_id"`
			Results []any  `json:"results"`
		}{id, m.all(subs, verdictOnly)})
		m.close(r)
	}
}

// newID is what code-judge makes up for a submission without an id.
func newID() string { return uuid.NewString() }
