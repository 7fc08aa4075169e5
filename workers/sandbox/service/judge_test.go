package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
)

// program is what a test's runner does for a solution.
type program struct {
	result sandbox.Result
	err    error
}

func programs(p map[string]program) sandbox.Runner {
	return runnerFunc(func(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
		q := p[strings.TrimSuffix(c.Code, scriptEnd)]
		return q.result, q.err
	})
}

// FastAPI's own answers to code-judge's models were recorded with fastapi 0.115.11, the version that rStar2 pins. How a
// parser words a JSON error, and where it sees it, is its own.
func TestSchemaErrorsAreThoseOfFastAPI(t *testing.T) {
	recorded, err := os.ReadFile("testdata/fastapi_422.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Path, Body string
		Status     int
		Answer     string
	}
	if err := json.Unmarshal(recorded, &cases); err != nil || len(cases) < 20 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	n := start(t, Options{Runner: newGate()})
	for _, c := range cases {
		code, body, h := n.send(t, t.Context(), c.Path, c.Body)
		got, want := faultsOf(t, body), faultsOf(t, []byte(c.Answer))
		if code != c.Status || !reflect.DeepEqual(got, want) || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s\n got %d %s\nwant %d %s", c.Path, c.Body, code, body, c.Status, c.Answer)
		}
	}
}

func faultsOf(t *testing.T, body []byte) []map[string]any {
	var v struct {
		Detail []map[string]any `json:"detail"`
	}
	if err := json.Unmarshal(body, &v); err != nil || len(v.Detail) == 0 {
		t.Errorf("%s is no list of faults: %v", body, err)
	}
	for _, f := range v.Detail {
		if f["type"] == "json_invalid" {
			delete(f, "ctx")
			delete(f, "loc")
		}
	}
	return v.Detail
}

// The bytes are those that FastAPI writes for code-judge's result model.
func TestResultsHaveCodeJudgesShape(t *testing.T) {
	wall := 500 * time.Millisecond
	n := start(t, Options{Judge: JudgeOptions{StreamChars: 6}, Runner: programs(map[string]program{
		"ok":      {result: sandbox.Result{Status: sandbox.Success, Stdout: "<é>&\"\n", Wall: wall}},
		"error":   {result: sandbox.Result{Status: sandbox.Error, ExitCode: 1, Stderr: "abcdéfgh", Wall: wall}},
		"timeout": {result: sandbox.Result{Status: sandbox.Timeout, Wall: 4080 * time.Millisecond}},
		"oom":     {result: sandbox.Result{Status: sandbox.OOM, Signal: 9, Wall: wall}},
		"killed":  {result: sandbox.Result{Status: sandbox.Killed, Signal: 6, Wall: wall}},
		"infra":   {err: fmt.Errorf("%w: gone", sandbox.ErrInfrastructure)},
	})})
	for _, c := range []struct{ path, body, want string }{
		{"/run", `{"type":"python","solution":"ok","sub_id":"1"}`, `{"sub_id":"1","success":true,"run_success":true,"cost":0.5,"stdout":"<é>&\"\n","stderr":"","reason":""}`},
		{"/run", `{"type":"python","solution":"ok","sub_id":"2","expected_output":" <é>&\"\n\n"}`, `{"sub_id":"2","success":true,"run_success":true,"cost":0.5,"stdout":"<é>&\"\n","stderr":"","reason":""}`},
		{"/run", `{"type":"python","solution":"ok","sub_id":"3","expected_output":"no","options":{"a":"b"},"unknown":1}`, `{"sub_id":"3","success":false,"run_success":true,"cost":0.5,"stdout":"<é>&\"\n","stderr":"","reason":""}`},
		{"/run", `{"type":"python","solution":"error","sub_id":"4"}`, `{"sub_id":"4","success":false,"run_success":false,"cost":0.5,"stdout":"","stderr":"abcdéf","reason":""}`},
		{"/run", `{"type":"python","solution":"timeout","sub_id":"5"}`, `{"sub_id":"5","success":false,"run_success":false,"cost":4.08,"stdout":"Suicid","stderr":"","reason":"worker_timeout"}`},
		{"/run", `{"type":"python","solution":"oom","sub_id":"6"}`, `{"sub_id":"6","success":false,"run_success":false,"cost":0.5,"stdout":"","stderr":"","reason":""}`},
		{"/run", `{"type":"python","solution":"killed","sub_id":"7"}`, `{"sub_id":"7","success":false,"run_success":false,"cost":0.5,"stdout":"","stderr":"","reason":""}`},
		{"/run", `{"type":"python","solution":"infra","sub_id":"8"}`, `{"sub_id":"8","success":false,"run_success":false,"cost":0,"stdout":null,"stderr":null,"reason":"internal_error"}`},
		{"/run", `{"type":"math","solution":"1","sub_id":"9"}`, `{"sub_id":"9","success":false,"run_success":false,"cost":0,"stdout":null,"stderr":null,"reason":"internal_error"}`},
		{"/run", `{"type":"cpp","solution":"1","sub_id":"10"}`, `{"sub_id":"10","success":false,"run_success":false,"cost":0,"stdout":null,"stderr":null,"reason":"invalid_input"}`},
		{"/judge", `{"type":"python","solution":"ok","sub_id":"11"}`, `{"sub_id":"11","success":true,"run_success":true,"cost":0.5,"reason":""}`},
		{"/judge/batch", `{"sub_id":"b","submissions":[{"type":"python","solution":"ok","sub_id":"12"}]}`, `{"sub_id":"b","results":[{"sub_id":"12","success":true,"run_success":true,"cost":0.5,"reason":""}]}`},
	} {
		code, body, _ := n.send(t, t.Context(), c.path, c.body)
		if code != http.StatusOK || string(body) != c.want {
			t.Errorf("%s %s\n got %d %s\nwant 200 %s", c.path, c.body, code, body, c.want)
		}
	}
	for path, want := range map[string]string{"/ping": `"pong"`, "/status": `{"queue":0,"num_workers":4}`} {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		w := &memory{header: http.Header{}}
		n.ServeHTTP(w, q)
		if string(w.body) != want {
			t.Errorf("%s says %s, expected %s", path, w.body, want)
		}
	}
}

// memory is a response held in memory.
type memory struct {
	header http.Header
	code   int
	body   []byte
}

func (m *memory) Header() http.Header         { return m.header }
func (m *memory) WriteHeader(code int)        { m.code = code }
func (m *memory) Write(b []byte) (int, error) { m.body = append(m.body, b...); return len(b), nil }

// released is the text that rStar2-Agent's released client makes of a result (spec: code_judge_utils.py).
func released(r judgeResult) string {
	lines := []string{"Tool call success"}
	if !r.RunSuccess || !r.Success {
		lines = []string{"Tool call failure", "reason: " + r.Reason}
	}
	for _, s := range []struct {
		name string
		text *string
	}{{"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		if s.text != nil && *s.text != "" {
			lines = append(lines, s.name+": "+*s.text)
		}
	}
	return strings.Join(append(lines, fmt.Sprintf("execution time: %.2fs", r.Cost)), "\n")
}

// TestPublishedRolloutsReadTheSameTexts holds the texts of rStar2-Agent's tool responses, with their execution-time line.
func TestPublishedRolloutsReadTheSameTexts(t *testing.T) {
	wall := 10 * time.Millisecond
	n := start(t, Options{Runner: programs(map[string]program{
		"stdout":    {result: sandbox.Result{Status: sandbox.Success, Stdout: "2\n", Wall: wall}},
		"nothing":   {result: sandbox.Result{Status: sandbox.Success, Wall: wall}},
		"exception": {result: sandbox.Result{Status: sandbox.Error, ExitCode: 1, Stderr: "ZeroDivisionError at line 2: division by zero\n  b=a/0\n", Wall: wall}},
		"timeout":   {result: sandbox.Result{Status: sandbox.Timeout, Wall: 4080 * time.Millisecond}},
		"exit":      {result: sandbox.Result{Status: sandbox.Error, ExitCode: 3, Wall: wall}},
		"infra":     {err: fmt.Errorf("%w: gone", sandbox.ErrInfrastructure)},
	})})
	for solution, want := range map[string]string{
		"stdout":    "Tool call success\nstdout: 2\n\nexecution time: 0.01s",
		"nothing":   "Tool call success\nexecution time: 0.01s",
		"exception": "Tool call failure\nreason: \nstderr: ZeroDivisionError at line 2: division by zero\n  b=a/0\n\nexecution time: 0.01s",
		"timeout":   "Tool call failure\nreason: worker_timeout\nstdout: Suicide from timeout.\n\nexecution time: 4.08s",
		"exit":      "Tool call failure\nreason: \nexecution time: 0.01s",
		"infra":     "Tool call failure\nreason: internal_error\nexecution time: 0.00s",
	} {
		for _, path := range []string{"/run/long-batch", "/long-batch", "/run/batch", "/batch"} {
			_, body, _ := n.send(t, t.Context(), path, map[string]any{"type": "batch", "submissions": []any{map[string]any{"type": "python", "solution": solution, "input": ""}}})
			var answer struct{ Results []judgeResult }
			if err := json.Unmarshal(body, &answer); err != nil || len(answer.Results) != 1 {
				t.Fatalf("%s: %s", path, body)
			}
			if got := released(answer.Results[0]); got != want {
				t.Errorf("%s %s reads\n%q, expected\n%q", path, solution, got, want)
			}
		}
	}
}

func TestABatchIsAnsweredInOrder(t *testing.T) {
	n := start(t, Options{Runner: runnerFunc(func(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
		return sandbox.Result{Status: sandbox.Success, Stdout: strings.TrimSuffix(c.Code, scriptEnd)}, nil
	}), MaxQueued: 10}) // far fewer than the batch has: it feeds them as there is room
	var subs []any
	for i := range 600 {
		subs = append(subs, map[string]any{"type": "python", "solution": fmt.Sprint(i)})
	}
	_, body, _ := n.send(t, t.Context(), "/run/long-batch", map[string]any{"submissions": subs})
	var answer struct{ Results []judgeResult }
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Results) != 600 {
		t.Fatalf("%v %.200s", err, body)
	}
	for i, r := range answer.Results {
		if r.Stdout == nil || *r.Stdout != fmt.Sprint(i) {
			t.Fatalf("result %d is %+v", i, r)
		}
	}
	if held := n.desk.budget.held.Load(); held != 0 {
		t.Errorf("%d bytes are still charged", held)
	}
}

func TestARetryAttachesToTheRunningCall(t *testing.T) {
	g := newGate()
	n := start(t, Options{Runner: g})
	batch := map[string]any{"submissions": []any{map[string]any{"type": "python", "solution": "a"}}}
	gone, leave := context.WithCancel(t.Context())
	go n.send(t, gone, "/run/long-batch", batch)
	g.await(t)
	leave()
	eventually(t, "it is an orphan", func() bool {
		n.desk.mu.Lock()
		defer n.desk.mu.Unlock()
		return len(n.desk.ledger.orphans) == 1
	})
	answer := make(chan []byte)
	go func() { _, body, _ := n.send(t, t.Context(), "/run/long-batch", batch); answer <- body }()
	eventually(t, "it is taken over", func() bool {
		n.desk.mu.Lock()
		defer n.desk.mu.Unlock()
		return len(n.desk.ledger.orphans) == 0
	})
	close(g.open)
	if body := <-answer; !strings.Contains(string(body), `"run_success":true`) || len(g.order()) != 1 {
		t.Errorf("%s after %v, expected the result of the one run", body, g.order())
	}
	if _, body, _ := n.send(t, t.Context(), "/run/long-batch", batch); !strings.Contains(string(body), `"run_success":true`) || len(g.order()) != 2 {
		t.Errorf("%s after %v: a delivered call was not run afresh", body, g.order())
	}
	eventually(t, "nothing is held", func() bool { return n.desk.budget.held.Load() == 0 })
}

// The released client submits again what was answered with queue_timeout.
func TestABatchIsAnsweredBeforeItsClientGivesUp(t *testing.T) {
	g := newGate()
	n := start(t, Options{Runner: g, Judge: JudgeOptions{BatchDeadline: 50 * time.Millisecond}, Running: 3})
	left := []string{"a", "b", "c", "d"}
	submit := func() {
		var subs []any
		for _, code := range left {
			subs = append(subs, map[string]any{"type": "python", "solution": code})
		}
		_, body, _ := n.send(t, t.Context(), "/run/long-batch", map[string]any{"submissions": subs})
		var answer struct{ Results []judgeResult }
		if err := json.Unmarshal(body, &answer); err != nil || len(answer.Results) != len(left) {
			t.Fatalf("%s: %v", body, err)
		}
		var again []string
		for i, r := range answer.Results {
			switch {
			case r.Reason == queueTimeout:
				again = append(again, left[i])
			case r.Stdout == nil || *r.Stdout != left[i]+scriptEnd:
				t.Errorf("%s ended as %+v", left[i], r)
			}
		}
		left = again
	}
	if submit(); len(left) != 4 {
		t.Errorf("%v are answered with queue_timeout, expected all", left)
	}
	close(g.open)
	eventually(t, "every call has ended", func() bool { submit(); return len(left) == 0 })
	if len(g.order()) != 4 {
		t.Errorf("%d runs of 4 calls: %q", len(g.order()), g.order())
	}
}

func TestANamedSubmissionRunsOnce(t *testing.T) {
	var runs atomic.Int64
	n := start(t, Options{Runner: runnerFunc(func(context.Context, sandbox.Call) (sandbox.Result, error) {
		runs.Add(1)
		return sandbox.Result{Status: sandbox.Success}, nil
	})})
	for range 2 {
		n.send(t, t.Context(), "/run", `{"type":"python","solution":"a","sub_id":"x"}`)
	}
	if runs.Load() != 1 {
		t.Errorf("%d runs of one sub_id, expected 1", runs.Load())
	}
	if n.send(t, t.Context(), "/run", `{"type":"python","solution":"b","sub_id":"x"}`); runs.Load() != 2 {
		t.Errorf("%d runs, expected another program under the label to run", runs.Load())
	}
}

// Without an address the program is one: a repeated call repeats its draws, and different programs do not share theirs.
func TestJudgeCallsAreSeededByTheirProgram(t *testing.T) {
	seeds := make(chan uint64, 8)
	n := start(t, Options{Runner: runnerFunc(func(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
		seeds <- c.Seed
		return sandbox.Result{Status: sandbox.Success}, nil
	})})
	var got []uint64
	for _, solution := range []string{"print(1)", "print(1)", "print(2)"} {
		code, body, _ := n.send(t, t.Context(), "/run", fmt.Sprintf(`{"type": "python", "solution": %q}`, solution))
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		got = append(got, <-seeds)
	}
	if got[0] != got[1] || got[0] == got[2] || got[0] == 0 {
		t.Errorf("seeds are %v, expected the first two alike and the third another", got)
	}
}
