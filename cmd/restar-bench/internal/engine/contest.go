package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/kernels/cpu"
)

// turn answers one request.
type turn func(ctx context.Context, request string) (match.Answer, error)

// Contest is restar's side of a match: it prepares a task for a job, a Shape as JSON, and answers each line of in on out.
func Contest(ctx context.Context, task, job string, in io.Reader, out io.Writer) error {
	var s Shape
	if err := json.Unmarshal([]byte(job), &s); err != nil {
		return fmt.Errorf("%w: job %q: %w", match.ErrInput, job, err)
	}
	prepare, ok := map[string]func(Shape) (turn, error){
		"train": newTrainer, "generate": newSampler, "products": newProducts, "parts": newParts,
	}[task]
	if !ok {
		return fmt.Errorf("%w: no task %q", match.ErrInput, task)
	}
	answer, err := prepare(s)
	if err != nil {
		return err
	}
	w := json.NewEncoder(out)
	if err := w.Encode(match.Answer{Version: "restar"}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		a, err := answer(ctx, lines.Text())
		if err != nil {
			return err
		}
		if a.PeakRSS, err = peakRSS(); err != nil {
			return err
		}
		if err := w.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

// threads reads a request that is a number of threads, and sets it.
func threads(request string) error {
	n := 0
	if _, err := fmt.Sscan(request, &n); err != nil || n < 1 {
		return fmt.Errorf("%w: request %q, want a number of threads", match.ErrInput, request)
	}
	runtime.GOMAXPROCS(n)
	return nil
}

// peakRSS is the most memory that the process has held, in bytes.
func peakRSS() (float64, error) {
	body, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		kib := 0.0
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			return 1024 * kib, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}

func backend() (*cpu.Backend, error) { return cpu.FromEnv() }
