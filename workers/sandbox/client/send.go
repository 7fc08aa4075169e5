package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/restar-rl/restar/workers/sandbox/service/wire"
	"go.opentelemetry.io/otel/propagation"
)

// kind is what one send came to.
type kind int

const (
	completed kind = iota // the program's own end
	failed                // the sandbox failed, or gave the call up: nothing is known of the program
	lost                  // the answer broke off: the call may have completed
	absent                // the node takes no calls: not reachable, or draining
	busy                  // the node has no room
	invalid               // the node refuses what is asked for, as every node would
	abandoned             // the caller's context ended
	gone                  // the node does not know the session
)

// answer is what came back of one send.
type answer struct {
	kind   kind
	result wire.Result
	after  time.Duration // of absent and busy: when to come again
	err    error
}

// maxAnswer bounds what is read of an answer: both outputs at the largest limit, escaped, and the rest.
const maxAnswer = 1 << 30

// send makes one HTTP request for a result.
func (c *Client) send(ctx context.Context, n *node, path, key string, body []byte) answer {
	var res wire.Result
	if a := c.post(ctx, n, path, key, body, &res); a.kind != completed {
		return a
	}
	return classify(n, res)
}

// post makes one HTTP request and decodes what it creates or gives.
func (c *Client) post(ctx context.Context, n *node, path, key string, body []byte, v any) answer {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, n.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{kind: invalid, err: err}
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Idempotency-Key", key) // lets the transport repeat it when a kept connection turns out closed
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(q.Header))
	r, err := c.http.Do(q)
	if err != nil {
		return broken(ctx, n, err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK && r.StatusCode != http.StatusCreated {
		return refusal(n, r)
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxAnswer)).Decode(v); err != nil {
		return broken(ctx, n, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 1<<10)) // lets the connection be used again
	return answer{kind: completed}
}

// broken tells a node that cannot be reached from an answer that broke off.
func broken(ctx context.Context, n *node, err error) answer {
	if ctx.Err() != nil {
		return answer{kind: abandoned, err: ctx.Err()}
	}
	err = fmt.Errorf("node %s: %w", n.base, err)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return answer{kind: absent, err: err}
	}
	return answer{kind: lost, err: err}
}

// refusal reads an answer that is no result.
func refusal(n *node, r *http.Response) answer {
	var e wire.Error
	text, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if json.Unmarshal(text, &e) != nil || e.Error == "" {
		e.Error = r.Status
	}
	a := answer{after: waitOf(r.Header.Get("Retry-After")), err: fmt.Errorf("node %s: %s", n.base, e.Error)}
	switch {
	case r.StatusCode == http.StatusTooManyRequests:
		a.kind = busy
	case r.StatusCode == http.StatusServiceUnavailable:
		a.kind = absent
	case r.StatusCode >= 500:
		a.kind = lost
	case r.StatusCode == http.StatusNotFound:
		a.kind = gone
	default:
		a.kind = invalid
	}
	return a
}

// waitOf reads Retry-After in seconds; a second where it is missing or a date.
func waitOf(header string) time.Duration {
	if s, err := strconv.Atoi(header); err == nil && s >= 0 {
		return time.Duration(s) * time.Second
	}
	return time.Second
}

// classify reads a result's status.
func classify(n *node, r wire.Result) answer {
	switch r.Status {
	case "success", "error", "timeout", "oom", "killed", "output_limit":
		return answer{kind: completed, result: r}
	}
	err := fmt.Errorf("node %s: %s: %s", n.base, r.Status, r.Reason)
	if !r.Retryable {
		return answer{kind: invalid, result: r, err: err}
	}
	if r.Status == wire.Rejected {
		return answer{kind: busy, result: r, after: time.Duration(r.RetryAfterMs) * time.Millisecond, err: err}
	}
	return answer{kind: failed, result: r, err: err}
}
