package sandboxbench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/client"
)

// burstWait is rStar2-Agent's mean time of a call (§3.1).
const burstWait = 300 * time.Millisecond

// burstWidth is how many calls are executed at once: rStar2's 32 senders of 64 calls.
const burstWidth = 2048

// expected is a call and how it has to end.
type expected struct {
	call sandbox.Call
	want sandbox.Result // Status, ExitCode and Stdout
}

// burst submits tens of thousands of calls at once to an executor in process, behind the real service and client.
func (b *bench) burst(ctx context.Context) error {
	c, err := b.node(ctx, "burst", fmt.Sprintf("--wait=%v", burstWait), fmt.Sprintf("--running=%d", burstWidth))
	if err != nil {
		return err
	}
	defer c.stop()
	var calls []expected
	for i := range b.Burst {
		code := fmt.Sprintf("print(%d)", i)
		calls = append(calls, expected{sandbox.Call{ID: fmt.Sprintf("burst/%d/turn 0/call 0", i), Code: code}, sandbox.Result{Status: sandbox.Success, Stdout: "ran " + code}})
	}
	return b.submit(ctx, c, "burst", calls, client.Options{Endpoints: []string{c.url}, Tier: sandbox.TierB, InFlight: burstWidth})
}

// real submits thousands of programs at once, with ends of every common kind, to the real sandbox.
func (b *bench) real(ctx context.Context) error {
	c, err := b.restar(ctx)
	if err != nil {
		return err
	}
	defer c.stop()
	var calls []expected
	for i := range b.Real {
		e := expected{sandbox.Call{ID: fmt.Sprintf("real/%d/turn 0/call 0", i), Code: fmt.Sprintf("print(%d * 7)", i)}, sandbox.Result{Status: sandbox.Success, Stdout: fmt.Sprintf("%d\n", i*7)}}
		switch i % 8 {
		case 1:
			e = expected{sandbox.Call{ID: e.call.ID, Code: fmt.Sprintf("print(%d)\n1 / 0", i)}, sandbox.Result{Status: sandbox.Error, ExitCode: 1, Stdout: fmt.Sprintf("%d\n", i)}}
		case 3:
			e = expected{sandbox.Call{ID: e.call.ID, Code: "import sys\nsys.exit(int(input()))", Stdin: fmt.Sprint(1 + i%100)}, sandbox.Result{Status: sandbox.Error, ExitCode: 1 + i%100}}
		case 5:
			e = expected{sandbox.Call{ID: e.call.ID, Code: fmt.Sprintf("import numpy as np\nnp.arange(%d).sum()", i)}, sandbox.Result{Status: sandbox.Success, Stdout: fmt.Sprintf("%d\n", i*(i-1)/2)}}
		}
		calls = append(calls, e)
	}
	return b.submit(ctx, c, "real", calls, client.Options{Endpoints: []string{c.url}, Tier: b.Tier})
}

// submit makes all calls at once and counts those that did not end as they had to. The service's own count tells calls that
// ran more than once.
func (b *bench) submit(ctx context.Context, c *contestant, name string, calls []expected, o client.Options) error {
	cl, err := client.New(o)
	if err != nil {
		return err
	}
	defer cl.Close()
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200) // the peak from here on
	before := statusKB(os.Getpid(), "VmRSS:")
	var mu sync.Mutex
	var wg sync.WaitGroup
	lost := 0
	var queue, run time.Duration
	began := time.Now()
	for _, e := range calls {
		wg.Go(func() {
			r, err := cl.Run(ctx, e.call)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || r.Status != e.want.Status || r.ExitCode != e.want.ExitCode || r.Stdout != e.want.Stdout {
				if lost++; lost <= 3 {
					b.say.Say("%s: call %s ended as %s %d %q, %v", name, e.call.ID, r.Status, r.ExitCode, r.Stdout, err)
				}
			}
			queue += r.Queue
			run += r.Wall
		})
	}
	wg.Wait()
	seconds := time.Since(began).Seconds()
	ended, err := completed(ctx, c.url)
	if err != nil {
		return err
	}
	n := float64(len(calls))
	f := b.figures
	f[name+"_lost"] = float64(lost)
	f[name+"_calls"] = n
	f[name+"_runs_over_calls"] = ended / n
	f.Set(name+"_seconds", seconds)
	f.Set(name+"_per_s", n/seconds)
	f.Set(name+"_mean_queue_ms", queue.Seconds()*1e3/n)
	f.Set(name+"_mean_run_ms", run.Seconds()*1e3/n)
	f.Set(name+"_service_peak_mb", c.peakKB()/1024)
	f.Set(name+"_client_grew_mb", (statusKB(os.Getpid(), "VmHWM:")-before)/1024)
	return nil
}

// completed is how many calls the service has brought to an end.
func completed(ctx context.Context, url string) (float64, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	sum := 0.0
	for s := bufio.NewScanner(r.Body); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), " "); ok && strings.HasPrefix(name, "restar_sandbox_calls_total{") {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			sum += v
		}
	}
	return sum, nil
}

// postJSON posts a value and decodes the answer.
func postJSON(ctx context.Context, url string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %.200s %w", url, r.Status, got, err)
	}
	return json.Unmarshal(got, answer)
}
