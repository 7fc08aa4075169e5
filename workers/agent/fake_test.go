package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
)

const toolName = "python_code_with_standard_io"

var testTokenizer = sync.OnceValue(func() *tokenizer.Tokenizer {
	t, err := tokenizer.Train([]string{
		"Tool call success stdout: Tool call failure reason: stderr: print(1 + 2) \"name\": \"arguments\": {\"code\": \"input\": \"\"}",
		"<reason> </reason> answer boxed user assistant What is 12 * 34? The answer is 408.",
	}, 300, tokenizer.Markers())
	if err != nil {
		panic(err)
	}
	return t
})

func template() tokenizer.Template {
	return tokenizer.Template{Tools: []tokenizer.Tool{tokenizer.PythonTool(toolName)}}
}

// script is what a fake model writes in turn t of a sample, from after the opening <reason>.
type script func(a philox.Address) string

// fakeEngine writes scripts. Log-probs and entropies come from the addresses, so it is as deterministic as a real one.
type fakeEngine struct {
	t      *tokenizer.Tokenizer
	script script
	fail   func(engine.Request) error

	mu        sync.Mutex
	seen      map[string][]int32 // ids of the last request of a session
	generated map[string]int     // generations by session
	released  map[string]int
}

func newFakeEngine(s script) *fakeEngine {
	return &fakeEngine{
		t: testTokenizer(), script: s, seen: map[string][]int32{}, generated: map[string]int{}, released: map[string]int{},
	}
}

func (f *fakeEngine) Generate(_ context.Context, req engine.Request) (engine.Generation, error) {
	if f.fail != nil {
		if err := f.fail(req); err != nil {
			return engine.Generation{}, err
		}
	}
	f.mu.Lock()
	last := f.seen[req.Session]
	f.seen[req.Session] = slices.Clone(req.IDs)
	f.generated[req.Session]++
	f.mu.Unlock()
	if len(req.IDs) < len(last) || !slices.Equal(req.IDs[:len(last)], last) {
		return engine.Generation{}, fmt.Errorf("context of turn %d does not extend the one before", req.Address.Turn)
	}
	ids := f.t.EncodeWithSpecials(f.script(req.Address) + tokenizer.TurnEnd)
	gen := engine.Generation{IDs: ids, Finish: engine.FinishStop, Version: "v1"}
	if len(ids) > req.MaxNew {
		gen.IDs, gen.Finish = ids[:req.MaxNew], engine.FinishLength
	}
	key := philox.NewKey(req.Seed)
	for i := range gen.IDs {
		gen.LogProbs = append(gen.LogProbs, -float32(key.Uniform(req.Address.WithToken(2*i))))
		gen.Entropy = append(gen.Entropy, float32(key.Uniform(req.Address.WithToken(2*i+1))))
	}
	return gen, nil
}

func (f *fakeEngine) Release(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released[session]++
	delete(f.seen, session)
}

// fakeRunner is a sandbox whose results depend on the call alone.
type fakeRunner struct {
	delay func(call sandbox.Call) time.Duration
	fail  func(call sandbox.Call) error

	mu    sync.Mutex
	calls []sandbox.Call
}

func (f *fakeRunner) Run(ctx context.Context, call sandbox.Call) (sandbox.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	f.mu.Unlock()
	if f.fail != nil {
		if err := f.fail(call); err != nil {
			return sandbox.Result{}, err
		}
	}
	if f.delay != nil {
		select {
		case <-time.After(f.delay(call)):
		case <-ctx.Done():
			return sandbox.Result{}, ctx.Err()
		}
	}
	r := sandbox.Result{Status: sandbox.Success, CPU: time.Millisecond, Wall: 2 * time.Millisecond}
	switch {
	case strings.Contains(call.Code, "raise"):
		r.Status, r.ExitCode = sandbox.Error, 1
		r.Stderr = "ValueError at line 1: no\n  " + call.Code + "\n"
	case strings.Contains(call.Code, "while True"):
		r.Status, r.Signal = sandbox.Timeout, 9
		r.Stdout = fmt.Sprint("got to ", time.Now().UnixNano())
	default:
		h := fnv.New64a()
		fmt.Fprint(h, call.Code, "|", call.Stdin, "|", call.Seed)
		r.Stdout = fmt.Sprintf("%d\n", h.Sum64()%1000)
	}
	return r, nil
}

func callText(code string) string {
	body, _ := json.Marshal(map[string]any{"name": toolName, "arguments": map[string]string{"code": code, "input": ""}})
	return "</reason>\n<tool_call>\n" + string(body) + "\n</tool_call>"
}

func answerText(answer string) string { return "</reason>\n<answer>\\boxed{" + answer + "}</answer>" }

// mixedScript is a model that does everything a model can do wrong, by its coordinates.
func mixedScript(a philox.Address) string {
	kind := philox.NewKey(7).IntN(a, 10)
	code := fmt.Sprintf("print(%d * %d)", a.Sample+2, a.Turn+3)
	switch {
	case a.Turn == 0 && kind < 8, kind < 3:
		switch (a.Sample + a.Turn) % 7 {
		case 0:
			return "a" + callText(code)
		case 1:
			return callText(code) + callText("raise ValueError")
		case 2:
			return "<tool_call>{\"name\": 1}</tool_call>"
		case 3:
			return callText("while True: pass")
		case 4:
			return strings.ReplaceAll(callText(code), toolName, "calculator")
		case 5:
			return callText(code) + callText(code) + callText("print(3)")
		default:
			return "<tool_call>\n{\"name\": \"" + toolName + "\", \"arguments\": {\"code\": \"print(1)\"}\n</tool_call>"
		}
	case kind == 9:
		return "so " + strings.Repeat("very long ", 400)
	default:
		return answerText(fmt.Sprint(a.Sample))
	}
}

func testConfig() Config {
	return Config{
		Tools: []Tool{Python(toolName)}, CallsPerTurn: 2, Format: ResponseFormat{StreamChars: 1000, ResponseChars: 256},
		Retry: RetryPolicy{Attempts: 4, Base: time.Microsecond, Cap: time.Millisecond, Deadline: time.Minute},
	}
}

func newTestAgent(t testing.TB, e Engine, r Runner, c Config) *Agent {
	t.Helper()
	a, err := New(e, r, testTokenizer(), c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func judgeOf(answer string) Judge {
	return func(_ context.Context, text string) (Verdict, error) {
		if strings.Contains(text, "\\boxed{"+answer+"}") {
			return Verdict{Outcome: Correct, Answer: answer, Path: "test"}, nil
		}
		return Verdict{Outcome: Wrong, Reason: "differs"}, nil
	}
}

func testTask(sample int) Task {
	return Task{
		Problem: "p1", Prompt: template().PromptIDs(testTokenizer(), "What is 12 * 34?"), Seed: 42,
		Address:   philox.Address{Purpose: philox.Rollout, Stage: 1, Iteration: 2, Ordinal: 3, Sample: sample},
		MaxTokens: 1200, MaxTurns: 5 - sample%4, Temperature: 1, Judge: judgeOf("408"),
	}
}

func mustRun(t testing.TB, a *Agent, task Task, onTurn func(TurnRecord) error) Trajectory {
	t.Helper()
	tr, err := a.Run(context.Background(), task, onTurn)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func mustCanonical(t testing.TB, tr Trajectory) string {
	t.Helper()
	body, err := tr.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// turns is a script of fixed turns.
func turns(texts ...string) script {
	return func(a philox.Address) string { return texts[min(a.Turn, len(texts)-1)] }
}
