package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/restar-rl/restar/workers/engine"
)

// apiError is an error as clients of OpenAI's interface read it.
type apiError struct {
	status  int
	message string
	param   string // the key of the request that is wrong, if one is
	code    string
	retry   int // seconds after which to try again; 0: no advice
}

func (e *apiError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

// statusGone counts requests whose client went away, as nginx does.
const statusGone = 499

var (
	errTooLate  = errors.New("serve: the request's time is up")
	errDraining = &apiError{status: http.StatusServiceUnavailable, message: "the server is about to end and takes no more requests; try again later", code: "draining", retry: 5}
)

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...), param: param}
}

func asAPIError(err error) *apiError {
	var known *apiError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return &apiError{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the request is larger than %d bytes; shorten it", large.Limit)}
	case errors.Is(err, engine.ErrRequest):
		return badRequest("", "%v", err)
	case errors.Is(err, engine.ErrClosed):
		return errDraining
	case errors.Is(err, errTooLate):
		return &apiError{status: http.StatusGatewayTimeout, message: "the answer was not finished in the time that a request may take; ask for fewer tokens", code: "timeout"}
	case errors.Is(err, context.Canceled):
		return &apiError{status: statusGone, message: "the client went away"}
	}
	return &apiError{status: http.StatusInternalServerError, message: "internal fault: " + err.Error()}
}

type errorJSON struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func (e *apiError) body() errorJSON {
	var out errorJSON
	out.Error.Message, out.Error.Type = e.message, e.kind()
	if e.param != "" {
		out.Error.Param = &e.param
	}
	if e.code != "" {
		out.Error.Code = &e.code
	}
	return out
}

func (e *apiError) kind() string {
	switch {
	case e.status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case e.status < http.StatusInternalServerError:
		return "invalid_request_error"
	}
	return "server_error"
}

// writeError answers with an error. What cannot be written was meant for a client that has gone.
func writeError(w http.ResponseWriter, e *apiError) {
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retry))
	}
	_ = writeJSON(w, e.status, e.body())
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := marshal(v)
	if err != nil {
		return fmt.Errorf("serve: encode an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return gone(err)
}

// gone marks a failed write as the client's absence, which is nobody's fault.
func gone(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", context.Canceled, err)
}
