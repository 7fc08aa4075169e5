package sandboxbench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// load is a way of calling code-judge's interface.
type load struct {
	name    string
	callers int // requests at once
	batch   int // calls a request; 1 is /run
}

// loads are the two of the published rollouts: eight single calls at once, and two batches of 32.
func loads() []load { return []load{{"run8", 8, 1}, {"batch64", 2, 32}} }

// tally is what one measurement saw.
type tally struct {
	calls, right int
	wall, cpu    time.Duration
	latency      []time.Duration // of each request
}

func (t *tally) add(o tally) {
	t.calls += o.calls
	t.right += o.right
	t.wall += o.wall
	t.cpu += o.cpu
	t.latency = append(t.latency, o.latency...)
}

// cpuMs is CPU time per successful call, milliseconds.
func (t tally) cpuMs() float64 { return t.cpu.Seconds() * 1e3 / float64(max(t.right, 1)) }

// rate is successful calls a second.
func (t tally) rate() float64 { return float64(t.right) / t.wall.Seconds() }

func (t tally) quantile(q float64) float64 {
	l := slices.Sorted(slices.Values(t.latency))
	if len(l) == 0 {
		return 0
	}
	return l[min(int(q*float64(len(l))), len(l)-1)].Seconds() * 1e3
}

// measure makes at least n calls of the snippets in turn.
func (c *contestant) measure(ctx context.Context, l load, snippets []string, n int) (tally, error) {
	before, err := c.cpu.usage()
	if err != nil {
		return tally{}, fmt.Errorf("CPU time of %s: %w", c.name, err)
	}
	var mu sync.Mutex
	var sum tally
	var next atomic.Int64
	var wg sync.WaitGroup
	var failure error
	began := time.Now()
	for range l.callers {
		wg.Go(func() {
			for {
				at := int(next.Add(int64(l.batch))) - l.batch
				if at >= n {
					return
				}
				t, err := c.request(ctx, l.batch, at, snippets)
				mu.Lock()
				sum.add(t)
				if err != nil {
					failure = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	sum.wall = time.Since(began)
	after, err := c.cpu.usage()
	if err == nil {
		err = failure
	}
	sum.cpu = after - before
	return sum, err
}

// answerTimeout bounds one request: a batch of 32 takes code-judge's design half a minute on two busy cores.
const answerTimeout = 3 * time.Minute

// request makes one request of some calls.
func (c *contestant) request(ctx context.Context, batch, at int, snippets []string) (tally, error) {
	type submission struct {
		Type     string `json:"type"`
		Solution string `json:"solution"`
	}
	var subs []submission
	for i := range batch {
		subs = append(subs, submission{"python", snippets[(at+i)%len(snippets)]})
	}
	var body any = subs[0]
	path := "/run"
	if batch > 1 {
		path, body = "/run/long-batch", map[string]any{"type": "batch", "submissions": subs}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return tally{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(text))
	if err != nil {
		return tally{}, err
	}
	q.Header.Set("Content-Type", "application/json")
	began := time.Now()
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return tally{}, fmt.Errorf("%s: %w", c.name, err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		return tally{}, fmt.Errorf("%s answered %s: %.200s %w", c.name, r.Status, answer, err)
	}
	t := tally{calls: batch, latency: []time.Duration{time.Since(began)}}
	type result struct {
		RunSuccess bool `json:"run_success"`
	}
	many := struct{ Results []result }{make([]result, 1)}
	if batch > 1 {
		err = json.Unmarshal(answer, &many)
	} else {
		err = json.Unmarshal(answer, &many.Results[0])
	}
	for _, x := range many.Results {
		if x.RunSuccess {
			t.right++
		}
	}
	return t, err
}
