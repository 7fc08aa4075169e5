package serve

import (
	"fmt"
	"net/http"
	"time"
)

// events writes server-sent events.
type events struct {
	w     http.ResponseWriter
	begun bool
}

// stuckClient is how long a client may leave an event unread before it counts as gone.
const stuckClient = 30 * time.Second

func (e *events) send(v any) error {
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("Cache-Control", "no-cache")
		e.w.WriteHeader(http.StatusOK)
	}
	return writeEvent(e.w, v)
}

// done ends the stream as clients expect it.
func (e *events) done() error {
	_, err := fmt.Fprint(e.w, "data: [DONE]\n\n")
	return gone(err)
}

func writeEvent(w http.ResponseWriter, v any) error {
	body, err := marshal(v)
	if err != nil {
		return fmt.Errorf("serve: encode an event: %w", err)
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(stuckClient)) // a writer without one (a test's) cannot get stuck
	if _, err := fmt.Fprintf(w, "data: %s\n\n", body); err != nil {
		return gone(err)
	}
	return gone(control.Flush())
}
