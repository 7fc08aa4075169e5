package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode"
)

// verdict is a judgeResult without its streams: what /judge answers.
type verdict struct {
	SubID      string  `json:"sub_id"`
	Success    bool    `json:"success"`
	RunSuccess bool    `json:"run_success"`
	Cost       float64 `json:"cost"`
	Reason     string  `json:"reason"`
}

func face(r judgeResult, verdictOnly bool) any {
	if verdictOnly {
		return verdict{r.SubID, r.Success, r.RunSuccess, r.Cost, r.Reason}
	}
	return r
}

// replyJudge writes a body as FastAPI does: compact, without escapes for HTML and without a line break.
func replyJudge(w http.ResponseWriter, v any) { writeCompact(w, http.StatusOK, v) }

// unprocessable answers 422 with FastAPI's list of what is wrong.
func unprocessable(w http.ResponseWriter, faults []fault) {
	writeCompact(w, http.StatusUnprocessableEntity, struct {
		Detail []fault `json:"detail"`
	}{faults})
}

func writeCompact(w http.ResponseWriter, code int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // structs of strings, numbers and decoded JSON always encode
	patience(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// stripped is Python's str.strip().
func stripped(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f })
}

// head keeps the first n code points.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func isOther(err error) bool { return errors.Is(err, errOtherProgram) }
