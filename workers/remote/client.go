package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/restar-rl/restar/workers/engine"
)

// Client is an engine. It is safe for use by many goroutines.
type Client struct {
	opt Options
	url string
}

// New makes a client and has the server answer probe, any request of the run, with one id: a server that cannot be an engine is
// refused before the run begins.
func New(ctx context.Context, o Options, probe engine.Request) (*Client, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{opt: o, url: strings.TrimSuffix(o.URL, "/") + "/v1/completions"}
	probe.MaxNew = 1
	if _, err := c.Generate(ctx, probe); err != nil {
		return nil, fmt.Errorf("%s cannot be an engine: %w", o.URL, err)
	}
	return c, nil
}

// Generate samples one turn. It tries again while the server is unreachable, full or failing, and returns at once what trying
// again cannot mend: ErrRefused, ErrInexact, engine.ErrRequest.
func (c *Client) Generate(ctx context.Context, r engine.Request) (engine.Generation, error) {
	if err := c.refuse(r); err != nil {
		return engine.Generation{}, err
	}
	body, err := json.Marshal(c.body(r))
	if err != nil {
		return engine.Generation{}, err
	}
	wait := c.opt.Base
	for attempt := 1; ; attempt++ {
		answer, err := c.attempt(ctx, r.Session, body)
		if err == nil {
			gen, err := c.generation(r, answer)
			if err == nil {
				tell(r, gen)
			}
			return gen, err
		}
		var busy *unavailable
		if !errors.As(err, &busy) || attempt >= c.opt.Attempts || ctx.Err() != nil {
			return engine.Generation{}, fmt.Errorf("remote: session %q at %s, attempt %d: %w", r.Session, c.url, attempt, err)
		}
		select {
		case <-ctx.Done():
			return engine.Generation{}, fmt.Errorf("remote: session %q waiting for %s: %w", r.Session, c.url, errors.Join(context.Cause(ctx), err))
		case <-time.After(max(wait, busy.after)):
		}
		wait = min(2*wait, c.opt.Cap)
	}
}

// Release does nothing: servers find what contexts share by content and forget it by age.
func (c *Client) Release(string) {}

func tell(r engine.Request, g engine.Generation) {
	for i := range g.IDs {
		if r.OnToken == nil {
			return
		}
		t := engine.Token{ID: g.IDs[i], LogProb: g.LogProbs[i]}
		if g.Entropy != nil {
			t.Entropy = g.Entropy[i]
		}
		r.OnToken(t)
	}
}

// unavailable is a failure that may pass.
type unavailable struct {
	err   error
	after time.Duration // the server's advice
}

func (u *unavailable) Error() string { return u.err.Error() }
func (u *unavailable) Unwrap() error { return u.err }

// maxAnswer bounds an answer in memory: 64 MiB is a million tokens with their texts.
const maxAnswer = 64 << 20

// attempt asks once.
func (c *Client) attempt(ctx context.Context, session string, body []byte) (completionResponse, error) {
	var out completionResponse
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-Id", session) // routers keep a trajectory with the server that has its prefix
	if c.opt.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.opt.Key)
	}
	resp, err := c.opt.HTTP.Do(req)
	if err != nil {
		return out, &unavailable{err: err}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return out, &unavailable{err: fmt.Errorf("the answer broke off after %d bytes: %w", len(raw), err)}
	case len(raw) > maxAnswer:
		return out, inexact("the answer is longer than %d bytes", maxAnswer)
	case resp.StatusCode != http.StatusOK:
		return out, statusError(resp, raw)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, inexact("the answer is not the JSON of a completion: %v", err)
	}
	return out, nil
}

// statusError types an answer that is none.
func statusError(resp *http.Response, body []byte) error {
	err := fmt.Errorf("status %d: %.300s", resp.StatusCode, bytes.TrimSpace(body))
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= http.StatusInternalServerError:
		after, _ := time.ParseDuration(resp.Header.Get("Retry-After") + "s") // a date or nothing is no advice
		return &unavailable{err: err, after: min(max(after, 0), maxAdvice)}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%w: set the key of the server", err)
	}
	return fmt.Errorf("%w: %w", engine.ErrRequest, err)
}

// maxAdvice bounds how long a server may send a client away: the caller's own retries are more durable.
const maxAdvice = 30 * time.Second
