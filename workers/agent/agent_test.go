package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// rawEngine samples fixed ids.
type rawEngine struct {
	*fakeEngine
	ids []int32
}

func (r *rawEngine) Generate(context.Context, engine.Request) (engine.Generation, error) {
	zero := make([]float32, len(r.ids))
	return engine.Generation{IDs: r.ids, LogProbs: zero, Entropy: zero, Finish: engine.FinishStop, Version: "v1"}, nil
}

// constantRunner prints the same whatever is called.
type constantRunner string

func (c constantRunner) Run(context.Context, sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{Status: sandbox.Success, Stdout: string(c)}, nil
}

func TestTrap12StopReasonsAreTyped(t *testing.T) {
	call := callText("print(1)")
	for name, c := range map[string]struct {
		script    script
		maxTokens int
		maxTurns  int
		want      StopReason
		turns     int
		runs      int
	}{
		"answered":                      {turns(answerText("408")), 900, 5, Answered, 1, 0},
		"answered after a call":         {turns(call, answerText("408")), 900, 5, Answered, 2, 1},
		"answered in the last turn":     {turns(call, answerText("408")), 900, 2, Answered, 2, 1},
		"call in the last turn":         {turns(call), 900, 2, StopTurns, 2, 1},
		"cut inside a call":             {turns(call), 20, 5, StopLength, 1, 0},
		"cut after a whole call":        {turns(call + "<tool_call>" + strings.Repeat("z", 500)), 300, 5, StopLength, 1, 0},
		"no room for the tool response": {turns(call), 10 + len(testTokenizer().EncodeWithSpecials(call)), 5, ToolOverflow, 1, 1},
		"budget ends with the call":     {turns(call), 1 + len(testTokenizer().EncodeWithSpecials(call)), 5, StopLength, 1, 0},
	} {
		r := &fakeRunner{}
		task := testTask(0)
		task.MaxTokens, task.MaxTurns = c.maxTokens, c.maxTurns
		tr := mustRun(t, newTestAgent(t, newFakeEngine(c.script), r, testConfig()), task, nil)
		if tr.Stop != c.want || len(tr.Turns) != c.turns || len(r.calls) != c.runs {
			t.Errorf("%s: stop %q, %d turns, %d runs; want %q, %d, %d", name, tr.Stop, len(tr.Turns), len(r.calls), c.want, c.turns, c.runs)
		}
		if tr.ResponseLen() > c.maxTokens {
			t.Errorf("%s: response of %d tokens for a budget of %d", name, tr.ResponseLen(), c.maxTokens)
		}
		wantReward := map[bool]float64{true: 1, false: 0}[c.want == Answered]
		if tr.Reward != wantReward || tr.Truncated() == (c.want == Answered) {
			t.Errorf("%s: reward %v, truncated %v", name, tr.Reward, tr.Truncated())
		}
	}
}

func TestUnfinishedTrajectoryIsWrongWithoutBeingJudged(t *testing.T) {
	task := testTask(0)
	task.MaxTurns = 1
	task.Judge = func(context.Context, string) (Verdict, error) { t.Error("judged"); return Verdict{}, nil }
	tr := mustRun(t, newTestAgent(t, newFakeEngine(turns(answerText("408")+callText("print(1)"))), &fakeRunner{}, testConfig()), task, nil)
	if tr.Verdict != (Verdict{Outcome: Wrong, Reason: "unfinished: turns"}) || tr.Reward != 0 {
		t.Errorf("verdict %+v, reward %v", tr.Verdict, tr.Reward)
	}
}

func TestEveryOutcomeIsTypedAndAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want OutcomeType
		says string
	}{
		"ok":            {callText("print(1)"), OK, "Tool call success\nstdout: "},
		"exception":     {callText("raise ValueError"), ExecError, "Tool call failure\nreason: \nstderr: ValueError at line 1: no\n  raise ValueError\n"},
		"time":          {callText("while True: pass"), Timeout, "Tool call failure\nreason: worker_timeout\nstdout: Suicide from timeout.\n"},
		"bad JSON":      {"<tool_call>{</tool_call>", ParseError, "Failed to decode tool call: "},
		"bad arguments": {`<tool_call>{"name": "` + toolName + `", "arguments": []}</tool_call>`, ParseError, "Error when executing tool: bad arguments: expected a JSON object, found array"},
		"unknown tool":  {`<tool_call>{"name": "rm</tool_response>", "arguments": {}}</tool_call>`, UnknownTool, `Error when executing tool: 'rm<\/tool_response>' is not a tool`},
	} {
		tr := mustRun(t, newTestAgent(t, newFakeEngine(turns(c.text, answerText("1"))), &fakeRunner{}, testConfig()), testTask(0), nil)
		call := tr.Turns[0].Calls[0]
		if call.Type != c.want || !strings.HasPrefix(call.Text, c.says) {
			t.Errorf("%s: %q %q, want %q %q", name, call.Type, call.Text, c.want, c.says)
		}
		if !strings.Contains(testTokenizer().Decode(tr.IDs), "<tool_response>\n"+call.Text+"\n</tool_response>") {
			t.Errorf("%s: the model cannot read its response", name)
		}
		counts := tr.Counts()
		if counts.Calls != 1 || counts.Errors != map[bool]int{true: 0, false: 1}[c.want == OK] {
			t.Errorf("%s: counts %+v", name, counts)
		}
	}
}

func TestTrap20ExtraCallsOfATurnAreAnsweredAndNotRun(t *testing.T) {
	r := &fakeRunner{}
	text := callText("print(1)") + callText("print(2)") + callText("print(3)")
	tr := mustRun(t, newTestAgent(t, newFakeEngine(turns(text, answerText("1"))), r, testConfig()), testTask(0), nil)
	calls := tr.Turns[0].Calls
	if len(r.calls) != 2 || len(calls) != 3 || calls[2].Type != NotRun ||
		calls[2].Text != "Error when executing tool: only 2 tool calls per turn are run; this one was not" {
		t.Errorf("%d runs, outcomes %+v", len(r.calls), calls)
	}
	if c := tr.Counts(); c.Calls != 2 || c.Errors != 0 || c.NotRun != 1 {
		t.Errorf("counts %+v", c)
	}
}

func TestRepeatedCallsAreCounted(t *testing.T) {
	e := newFakeEngine(turns(callText("print(1)"), callText("print(1)")+callText("print(2)"), callText("print(1)"), answerText("1")))
	tr := mustRun(t, newTestAgent(t, e, &fakeRunner{}, testConfig()), testTask(0), nil)
	if c := tr.Counts(); c.Calls != 4 || c.Duplicates != 2 {
		t.Errorf("counts %+v", c)
	}
}

func TestToolSeedsHaveAddresses(t *testing.T) {
	seeds := map[uint64]string{}
	for _, purpose := range []philox.Purpose{philox.Rollout, philox.Eval, philox.Filter} {
		for sample := range 4 {
			task := testTask(sample)
			task.Address.Purpose = purpose
			for turn := range 3 {
				for call := range 2 {
					at := fmt.Sprint(purpose, sample, turn, call)
					seed := task.toolSeed(turn, call)
					if other, ok := seeds[seed]; ok {
						t.Fatalf("calls %s and %s share a seed", at, other)
					}
					seeds[seed] = at
				}
			}
		}
	}
	r := &fakeRunner{}
	task := testTask(3)
	mustRun(t, newTestAgent(t, newFakeEngine(turns(callText("print(1)"), answerText("1"))), r, testConfig()), task, nil)
	if r.calls[0].Seed != task.toolSeed(0, 0) || r.calls[0].ID != "1/1/2/3/3/turn 0/call 0" {
		t.Errorf("call %q ran with seed %d", r.calls[0].ID, r.calls[0].Seed)
	}
}

func TestInfrastructureFailuresAreRetriedAndLeaveNoTrace(t *testing.T) {
	script := turns(callText("print(1)"), answerText("408"))
	want := mustRun(t, newTestAgent(t, newFakeEngine(script), &fakeRunner{}, testConfig()), testTask(0), nil)
	left := 3
	r := &fakeRunner{fail: func(sandbox.Call) error {
		if left--; left >= 0 {
			return fmt.Errorf("%w: zygote died", sandbox.ErrInfrastructure)
		}
		return nil
	}}
	got := mustRun(t, newTestAgent(t, newFakeEngine(script), r, testConfig()), testTask(0), nil)
	if mustCanonical(t, got) != mustCanonical(t, want) {
		t.Error("retries changed the trajectory")
	}
	if got.Timings.Retries != 3 || got.Counts().Errors != 0 {
		t.Errorf("%d retries, counts %+v", got.Timings.Retries, got.Counts())
	}
}

func TestTrap23InfrastructureNeverLooksLikeAModelMistake(t *testing.T) {
	down := errors.New("no route")
	script := turns(callText("print(1)"), answerText("408"))
	failing := func(req engine.Request) error {
		if req.Address.Turn == 1 {
			return down
		}
		return nil
	}
	for name, c := range map[string]struct {
		engine func(engine.Request) error
		runner func(sandbox.Call) error
		judge  Judge
		runs   int
	}{
		"sandbox down":      {runner: func(sandbox.Call) error { return fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, down) }, runs: 4},
		"sandbox closed":    {runner: func(sandbox.Call) error { return fmt.Errorf("%w: %w", sandbox.ErrClosed, down) }, runs: 1},
		"engine down":       {engine: failing, runs: 1},
		"verifier down":     {judge: func(context.Context, string) (Verdict, error) { return Verdict{}, down }, runs: 1},
		"verifier confused": {judge: func(context.Context, string) (Verdict, error) { return Verdict{Reason: "?"}, nil }, runs: 1},
	} {
		e, r, task := newFakeEngine(script), &fakeRunner{fail: c.runner}, testTask(0)
		e.fail = c.engine
		if c.judge != nil {
			task.Judge = c.judge
		}
		_, err := newTestAgent(t, e, r, testConfig()).Run(context.Background(), task, nil)
		if !IsInfra(err) || (name != "verifier confused" && !errors.Is(err, down)) {
			t.Errorf("%s: error %v", name, err)
		}
		if len(r.calls) != c.runs || e.released[task.Key()] != 1 {
			t.Errorf("%s: %d runs, want %d; released %d times", name, len(r.calls), c.runs, e.released[task.Key()])
		}
	}
}

func TestTrap23UnknownVerdictIsNotWrong(t *testing.T) {
	task := testTask(0)
	task.Judge = func(context.Context, string) (Verdict, error) {
		return Verdict{Outcome: Unknown, Reason: "verifier time"}, nil
	}
	tr := mustRun(t, newTestAgent(t, newFakeEngine(turns(answerText("1"))), &fakeRunner{}, testConfig()), task, nil)
	if tr.Verdict.Outcome != Unknown {
		t.Errorf("verdict %+v", tr.Verdict)
	}
}

func TestUnknownSandboxStatusIsInfrastructure(t *testing.T) {
	_, err := newTestAgent(t, newFakeEngine(turns(callText("print(1)"))), statusRunner("lost"), testConfig()).Run(context.Background(), testTask(0), nil)
	if !IsInfra(err) || !errors.Is(err, errUnknownStatus) {
		t.Errorf("error %v", err)
	}
}

type statusRunner sandbox.Status

func (s statusRunner) Run(context.Context, sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{Status: sandbox.Status(s)}, nil
}

func TestTrap25CancellationIsNeitherErrorOfTheModelNorOfTheInfrastructure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &fakeRunner{fail: func(sandbox.Call) error { cancel(); return fmt.Errorf("%w: gone", sandbox.ErrInfrastructure) }}
	_, err := newTestAgent(t, newFakeEngine(turns(callText("print(1)"))), r, testConfig()).Run(ctx, testTask(0), nil)
	if !errors.Is(err, context.Canceled) || IsInfra(err) || len(r.calls) != 1 {
		t.Errorf("error %v after %d runs", err, len(r.calls))
	}
}

func TestStuckSandboxIsGivenUpAtTheDeadline(t *testing.T) {
	c := testConfig()
	c.Retry = RetryPolicy{Attempts: 2, Deadline: time.Millisecond}
	r := &fakeRunner{delay: func(sandbox.Call) time.Duration { return time.Hour }}
	_, err := newTestAgent(t, newFakeEngine(turns(callText("print(1)"))), r, c).Run(context.Background(), testTask(0), nil)
	if !IsInfra(err) || !errors.Is(err, context.DeadlineExceeded) || len(r.calls) != 2 {
		t.Errorf("error %v after %d runs", err, len(r.calls))
	}
}

// spoiledEngine changes what a fake engine returns.
type spoiledEngine struct {
	*fakeEngine
	spoil func(*engine.Generation)
}

func (s spoiledEngine) Generate(ctx context.Context, req engine.Request) (engine.Generation, error) {
	g, err := s.fakeEngine.Generate(ctx, req)
	s.spoil(&g)
	return g, err
}

func TestTrap19BrokenGenerationsAreRefused(t *testing.T) {
	task := testTask(0)
	task.Version = "v1"
	for name, spoil := range map[string]func(*engine.Generation){
		"empty":           func(g *engine.Generation) { *g = engine.Generation{Finish: engine.FinishLength, Version: "v1"} },
		"short log-probs": func(g *engine.Generation) { g.LogProbs = g.LogProbs[1:] },
		"stale weights":   func(g *engine.Generation) { g.Version = "v0" },
		"NaN":             func(g *engine.Generation) { g.LogProbs[0] = float32(math.NaN()) },
		"wrong finish":    func(g *engine.Generation) { g.Finish = engine.FinishLength },
		"no stop token": func(g *engine.Generation) {
			n := len(g.IDs) - 1
			g.IDs, g.LogProbs, g.Entropy = g.IDs[:n], g.LogProbs[:n], g.Entropy[:n]
		},
	} {
		e := spoiledEngine{newFakeEngine(turns(answerText("1"))), spoil}
		if _, err := newTestAgent(t, e, &fakeRunner{}, testConfig()).Run(context.Background(), task, nil); !IsInfra(err) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestTrap19TrajectoryHasOneWeightVersion(t *testing.T) {
	n := 0
	e := spoiledEngine{newFakeEngine(turns(callText("print(1)"), answerText("1"))), func(g *engine.Generation) { n++; g.Version = fmt.Sprint(n) }}
	if _, err := newTestAgent(t, e, &fakeRunner{}, testConfig()).Run(context.Background(), testTask(0), nil); err == nil {
		t.Error("a trajectory spans two versions")
	}
}

func TestResultsDoNotDependOnCompany(t *testing.T) {
	const n = 32
	alone := make([]string, n)
	for i := range n {
		alone[i] = mustCanonical(t, mustRun(t, newTestAgent(t, newFakeEngine(mixedScript), &fakeRunner{}, testConfig()), testTask(i), nil))
	}
	r := &fakeRunner{delay: func(c sandbox.Call) time.Duration { return time.Duration(c.Seed%3000) * time.Microsecond }}
	a := newTestAgent(t, newFakeEngine(mixedScript), r, testConfig())
	together := make([]Trajectory, n)
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { together[i], errs[i] = a.Run(context.Background(), testTask(i), nil) })
	}
	wait.Wait()
	stops := map[StopReason]int{}
	for i := range n {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if got := mustCanonical(t, together[i]); got != alone[i] {
			t.Errorf("sample %d differs among %d from alone:\n%s\n%s", i, n, got, alone[i])
		}
		stops[together[i].Stop]++
	}
	if len(stops) < 3 {
		t.Errorf("the fake model only stops by %v", stops)
	}
}

func TestTasksAndConfigurationsAreChecked(t *testing.T) {
	a := newTestAgent(t, newFakeEngine(turns("x")), &fakeRunner{}, testConfig())
	for name, spoil := range map[string]func(*Task){
		"no prompt":    func(t *Task) { t.Prompt = nil },
		"no tokens":    func(t *Task) { t.MaxTokens = 0 },
		"no turns":     func(t *Task) { t.MaxTurns = 0 },
		"cold":         func(t *Task) { t.Temperature = -1 },
		"no judge":     func(t *Task) { t.Judge = nil },
		"wide address": func(t *Task) { t.Address.Sample = 1 << 16 },
		"many turns":   func(t *Task) { t.MaxTurns = 1 << 12 },
	} {
		task := testTask(0)
		spoil(&task)
		if _, err := a.Run(context.Background(), task, nil); err == nil {
			t.Errorf("task with %s was run", name)
		}
	}
	for name, spoil := range map[string]func(*Config){
		"no calls":      func(c *Config) { c.CallsPerTurn = 0 },
		"two names":     func(c *Config) { c.Tools = append(c.Tools, c.Tools[0]) },
		"no attempts":   func(c *Config) { c.Retry.Attempts = 0 },
		"no deadline":   func(c *Config) { c.Retry.Deadline = 0 },
		"negative text": func(c *Config) { c.Format.StreamChars = -1 },
	} {
		c := testConfig()
		spoil(&c)
		if _, err := New(nil, nil, testTokenizer(), c); err == nil {
			t.Errorf("configuration with %s was accepted", name)
		}
	}
	plain, err := tokenizer.Train([]string{"abc"}, 260, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(nil, nil, plain, testConfig()); err == nil {
		t.Error("a tokenizer without turn markers was accepted")
	}
}
