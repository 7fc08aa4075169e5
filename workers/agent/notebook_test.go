package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

// fakeSessions is a sandbox whose sessions print every cell that they have run.
type fakeSessions struct {
	fakeRunner
	lose func(cell sandbox.Call) error // fails a cell and loses its session

	mu     sync.Mutex
	opened int
	open   int
	seeds  []uint64
}

type fakeSession struct {
	all   *fakeSessions
	cells []string
	ended bool
	busy  sync.Mutex
}

func (f *fakeSessions) Open(_ context.Context, o sandbox.SessionOptions) (sandbox.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	f.open++
	f.seeds = append(f.seeds, o.Seed)
	return &fakeSession{all: f}, nil
}

func (s *fakeSession) Run(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
	if !s.busy.TryLock() {
		return sandbox.Result{}, fmt.Errorf("two cells of one session at once")
	}
	defer s.busy.Unlock()
	if s.ended {
		return sandbox.Result{}, sandbox.ErrSessionEnded
	}
	if s.all.lose != nil {
		if err := s.all.lose(c); err != nil {
			s.ended = true
			return sandbox.Result{}, err
		}
	}
	s.cells = append(s.cells, c.Code)
	r := sandbox.Result{Status: sandbox.Success, Stdout: strings.Join(s.cells, " ")}
	switch c.Code {
	case "exit":
		r.Status, r.ExitCode, r.SessionEnded = sandbox.Error, 1, true
	case "loop":
		r.Status, r.SessionEnded = sandbox.Timeout, true
	}
	s.ended = r.SessionEnded
	return r, nil
}

func (s *fakeSession) Close() error {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.all.open--
	s.ended = true
	return nil
}

func cellText(codes ...string) string {
	text := "</reason>"
	for _, code := range codes {
		body, _ := json.Marshal(map[string]any{"name": tokenizer.JupyterToolName, "arguments": map[string]string{"code": code}})
		text += "\n<tool_call>\n" + string(body) + "\n</tool_call>"
	}
	return text
}

// cellScript is a model that calls two cells a turn, one of which ends or outlasts its session in the turns after.
func cellScript(a philox.Address) string {
	name := string(rune('a' + a.Sample))
	return [...]string{cellText(name+"1", name+"2"), cellText(name + "3"), cellText("exit", name+"4"), cellText(name + "5"), cellText("loop", name+"6"), cellText(name + "7"), answerText("408")}[a.Turn]
}

func cellAgent(t *testing.T, r Runner) *Agent {
	c := testConfig()
	c.Tools, c.Retry.Attempts = []Tool{Jupyter()}, 3
	return newTestAgent(t, newFakeEngine(cellScript), r, c)
}

func cellTask(sample int) Task {
	task := testTask(sample)
	task.MaxTurns, task.MaxTokens = 10, 4000
	return task
}

func TestCellsFindWhatEarlierOnesOfTheirTrajectoryLeft(t *testing.T) {
	f := &fakeSessions{}
	a := cellAgent(t, f)
	for sample, name := range []string{"a", "b"} {
		tr := mustRun(t, a, cellTask(sample), nil)
		var said []string
		for _, turn := range tr.Turns {
			for _, call := range turn.Calls {
				said = append(said, call.Text)
			}
		}
		want := []string{"X1", "X1 X2", "X1 X2 X3", "X1 X2 X3 exit", "X4", "X4 X5", "", "X6", "X6 X7"}
		for i, w := range want {
			if w = strings.ReplaceAll(w, "X", name); i >= len(said) || w != "" && !strings.Contains(said[i]+"\n", "stdout: "+w+"\n") {
				t.Fatalf("sample %d, call %d reads %q, expected %q", sample, i, said, w)
			}
		}
	}
	if f.open != 0 || f.opened != 6 || f.seeds[0] != f.seeds[2] || f.seeds[0] == f.seeds[3] {
		t.Errorf("%d of %d sessions are open, seeds %v: expected three for each trajectory, closed, each with the trajectory's seed", f.open, f.opened, f.seeds)
	}
}

func TestALostSessionAndACrashLeaveTheSameTrajectory(t *testing.T) {
	var records []TurnRecord
	want := mustCanonical(t, mustRun(t, cellAgent(t, &fakeSessions{}), cellTask(0), func(r TurnRecord) error { records = append(records, r); return nil }))
	for _, code := range []string{"a1", "a2", "a3", "exit", "a4", "a5", "loop", "a6", "a7"} {
		for _, cause := range []error{sandbox.ErrInfrastructure, sandbox.ErrSessionEnded} {
			lost := false
			f := &fakeSessions{lose: func(c sandbox.Call) error {
				if c.Code != code || lost {
					return nil
				}
				lost = true
				return fmt.Errorf("%w: gone", cause)
			}}
			if got := mustCanonical(t, mustRun(t, cellAgent(t, f), cellTask(0), nil)); got != want || !lost || f.open != 0 {
				t.Errorf("a session lost at %s (%v): another trajectory, or %d sessions open", code, cause, f.open)
			}
		}
	}
	for n := 1; n < len(records); n++ {
		task := cellTask(0)
		resume, err := Rebuild(task, slices.Clone(records[:n]))
		if err != nil {
			t.Fatal(err)
		}
		task.Resume = &resume
		if got := mustCanonical(t, mustRun(t, cellAgent(t, &fakeSessions{}), task, nil)); got != want {
			t.Errorf("continued behind turn %d it is another trajectory", n)
		}
	}
}

func TestCellsRunInTheRealSandbox(t *testing.T) {
	pool, err := sandbox.Start(t.Context(), sandbox.Options{Tier: sandbox.TierB, Zygotes: 1, Warm: 1})
	if err != nil {
		t.Skipf("no sandbox on this machine: %v", err)
	}
	t.Cleanup(pool.Close)
	a := cellAgent(t, pool)
	a.engine = newFakeEngine(func(a philox.Address) string {
		return [...]string{cellText("x = 20", "x += 1"), cellText("x * 2"), answerText("408")}[a.Turn]
	})
	tr := mustRun(t, a, cellTask(0), nil)
	if text := tr.Turns[1].Calls[0].Text; text != "Tool call success\nstdout: 42\n" {
		t.Errorf("the last cell reads %q", text)
	}
	if n := pool.Status().Sessions; n != 0 {
		t.Errorf("%d sessions are open", n)
	}
}

func TestAStatefulToolNeedsSessions(t *testing.T) {
	c := testConfig()
	c.Tools = []Tool{Jupyter()}
	if _, err := New(newFakeEngine(cellScript), &fakeRunner{}, testTokenizer(), c); err == nil || !strings.Contains(err.Error(), "sessions") {
		t.Errorf("got %v", err)
	}
}
