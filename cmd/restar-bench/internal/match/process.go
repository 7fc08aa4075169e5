// Package match lets programs compete: contestants run as processes of their own, answer one request at a time, and take turns, so that
// what disturbs the machine disturbs all of them.
//
// A contestant writes one line of JSON when it is ready, and one for every line that it reads, until its input ends. Its standard error
// is shown only if it fails.
package match

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// ErrInput is wrapped by errors that the caller of the command can mend.
var ErrInput = errors.New("input refused")

// Spec says how to start a contestant.
type Spec struct {
	Name    string
	Command []string
}

// Answer is what contestants report; each fills the fields of its task.
type Answer struct {
	Version string             `json:"version,omitempty"`
	Seconds float64            `json:"seconds,omitempty"`
	Rate    float64            `json:"rate,omitempty"`
	Loss    float64            `json:"loss,omitempty"`
	PeakRSS float64            `json:"peak_rss,omitempty"` // bytes
	Parts   map[string]float64 `json:"parts,omitempty"`    // seconds of each
}

// Process is a running contestant, used by one goroutine.
type Process struct {
	Spec
	Version string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.ReadCloser
	lines   chan string
	errs    tail
}

// unset are variables that pin OpenBLAS to an old processor; a peer must choose its own kernels.
var unset = []string{"OPENBLAS_CORETYPE=", "OPENBLAS_L2_SIZE=", "OMP_NUM_THREADS=", "OPENBLAS_NUM_THREADS=", "MKL_NUM_THREADS="}

// stopWait is how long a contestant may take to end once its input has ended.
const stopWait = 5 * time.Second

// Start starts a contestant and waits until it is ready, or for wait at most.
func Start(ctx context.Context, s Spec, wait time.Duration) (*Process, error) {
	p := &Process{Spec: s, lines: make(chan string)}
	p.cmd = exec.CommandContext(ctx, s.Command[0], s.Command[1:]...)
	p.cmd.WaitDelay = stopWait
	for _, v := range os.Environ() {
		if !hasPrefix(v, unset) {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Stderr = &p.errs
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	go p.read()
	ready, err := p.answer(ctx, wait)
	if err != nil {
		p.Stop()
		return nil, err
	}
	p.Version = ready.Version
	return p, nil
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// read passes on the lines of a contestant until its output ends.
func (p *Process) read() {
	defer close(p.lines)
	s := bufio.NewScanner(p.out)
	for s.Scan() {
		p.lines <- s.Text()
	}
}

// Ask sends a request and waits for its answer, for wait at most.
func (p *Process) Ask(ctx context.Context, request string, wait time.Duration) (Answer, error) {
	if _, err := fmt.Fprintln(p.in, request); err != nil {
		return Answer{}, p.fault(fmt.Errorf("request %q: %w", request, err))
	}
	return p.answer(ctx, wait)
}

func (p *Process) answer(ctx context.Context, wait time.Duration) (Answer, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var a Answer
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.Stop() // after which all of its last words are there
			return a, p.fault(errors.New("it ended"))
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			return a, p.fault(fmt.Errorf("answer %q: %w", line, err))
		}
		return a, nil
	case <-timer.C:
		return a, p.fault(fmt.Errorf("no answer for %v", wait))
	case <-ctx.Done():
		return a, context.Cause(ctx)
	}
}

func (p *Process) fault(err error) error {
	if text := p.errs.String(); text != "" {
		return fmt.Errorf("%s: %w: %s", p.Name, err, text)
	}
	return fmt.Errorf("%s: %w", p.Name, err)
}

// Stop ends the contestant and waits for it. Its output is closed too, in case a child of it lives on.
func (p *Process) Stop() {
	_ = p.in.Close()
	timer := time.AfterFunc(stopWait, func() {
		_ = p.cmd.Process.Kill()
		_ = p.out.Close()
	})
	defer timer.Stop()
	for range p.lines { // what it still writes
	}
	_ = p.cmd.Wait() // how it ends no longer matters
}

// tail keeps the last line or so of a contestant's standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 400

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
