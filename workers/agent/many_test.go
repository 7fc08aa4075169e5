package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/sandbox"
)

func tasks(n int) []Task {
	out := make([]Task, n)
	for i := range out {
		out[i] = testTask(i)
	}
	return out
}

func TestTrap13ASampleThatFailsIsRunAgainAndHoldsNobodyUp(t *testing.T) {
	const n, broken, hopeless = 16, 3, 7
	var want [n]string
	for i := range want {
		want[i] = mustCanonical(t, mustRun(t, newTestAgent(t, newFakeEngine(mixedScript), &fakeRunner{}, testConfig()), testTask(i), nil))
	}
	e := newFakeEngine(mixedScript)
	var failures atomic.Int32
	e.fail = func(r engine.Request) error {
		if r.Address.Sample == hopeless || r.Address.Sample == broken && failures.Add(1) <= 2 {
			return errors.New("no route")
		}
		return nil
	}
	var mu sync.Mutex
	done := map[int]string{}
	unfinished, err := newTestAgent(t, e, &fakeRunner{}, testConfig()).RunAll(t.Context(), tasks(n), Many{Runs: 3, OnEnd: func(i int, tr Trajectory) error {
		mu.Lock()
		defer mu.Unlock()
		done[i] = mustCanonical(t, tr)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range unfinished {
		switch {
		case i == hopeless && (!IsInfra(u.Err) || done[i] != "" || u.Trajectory.Key != testTask(i).Key()):
			t.Errorf("the hopeless sample ended with %v and %q", u.Err, done[i])
		case i != hopeless && (u.Err != nil || done[i] != want[i]):
			t.Errorf("sample %d: %v; differs from alone: %v", i, u.Err, done[i] != want[i])
		}
	}
}

func TestAFailingRecordEndsAll(t *testing.T) {
	full := errors.New("the journal is full")
	_, err := newTestAgent(t, newFakeEngine(mixedScript), &fakeRunner{}, testConfig()).RunAll(t.Context(), tasks(8), Many{Runs: 2, OnTurn: func(i int, r TurnRecord) error {
		if i == 5 {
			return full
		}
		return nil
	}})
	if !errors.Is(err, full) {
		t.Errorf("error %v, want that of the record", err)
	}
}

// countingRunner knows how many calls ran at once.
type countingRunner struct {
	mu               sync.Mutex
	calls, now, most int
}

func (c *countingRunner) Run(context.Context, sandbox.Call) (sandbox.Result, error) {
	c.step(1)
	time.Sleep(time.Millisecond)
	c.step(-1)
	return sandbox.Result{Status: sandbox.Success}, nil
}

func (c *countingRunner) step(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += by
	c.calls += max(by, 0)
	c.most = max(c.most, c.now)
}

func TestNoMoreTrajectoriesRunThanAreAllowed(t *testing.T) {
	r := &countingRunner{}
	if _, err := newTestAgent(t, newFakeEngine(turns(callText("print(1)"), answerText("1"))), r, testConfig()).RunAll(t.Context(), tasks(12), Many{InFlight: 3, Runs: 1}); err != nil {
		t.Fatal(err)
	}
	if r.calls != 12 || r.most > 3 {
		t.Errorf("%d calls, at most %d at once; want 12, at most 3", r.calls, r.most)
	}
}

func TestAWallDeadlineOnlyReschedules(t *testing.T) {
	script := turns(callText("print(1)"), callText("print(2)"), answerText("408"))
	want := mustRun(t, newTestAgent(t, newFakeEngine(script), &fakeRunner{}, testConfig()), testTask(0), nil)
	stuck := &fakeRunner{}
	stuck.delay = func(c sandbox.Call) time.Duration {
		if c.ID == testTask(0).Key()+"/turn 1/call 0" {
			return time.Hour
		}
		return 0
	}
	task := testTask(0)
	task.Patience = time.Second
	var recorded []TurnRecord
	a := newTestAgent(t, newFakeEngine(script), stuck, testConfig())
	unfinished, err := a.RunAll(t.Context(), []Task{task}, Many{Runs: 5, OnTurn: func(_ int, r TurnRecord) error { recorded = append(recorded, r); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	u := unfinished[0]
	if !errors.Is(u.Err, ErrOverdue) || IsInfra(u.Err) || len(u.Trajectory.Turns) != 1 || u.Trajectory.Stop != "" || len(recorded) != 1 {
		t.Fatalf("error %v after %d turns, stop %q, %d recorded; want it overdue in its second turn", u.Err, len(u.Trajectory.Turns), u.Trajectory.Stop, len(recorded))
	}
	task.Resume, task.Patience = &u.Trajectory, time.Hour
	got := mustRun(t, newTestAgent(t, newFakeEngine(script), &fakeRunner{}, testConfig()), task, nil)
	if mustCanonical(t, got) != mustCanonical(t, want) {
		t.Error("a deadline changed the trajectory")
	}
}

func TestALostTrajectoryIsNeitherRightNorWrong(t *testing.T) {
	down := &InfraError{"running tool call x in the sandbox", 5, errors.New("no route")}
	for turn := range 2 {
		var records []TurnRecord
		mustRun(t, newTestAgent(t, newFakeEngine(mixedScript), &fakeRunner{}, testConfig()), testTask(0), func(r TurnRecord) error { records = append(records, r); return nil })
		begun, err := Rebuild(testTask(0), records[:turn])
		if err != nil {
			t.Fatal(err)
		}
		tr, err := Lose(begun, down)
		if err != nil {
			t.Fatal(err)
		}
		if tr.Stop != Lost || tr.Verdict.Outcome != Unknown || tr.Verdict.Reason != down.Error() || tr.Truncated() || tr.Reward != 0 {
			t.Errorf("after %d turns: %+v", turn, tr)
		}
		body, err := tr.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeTrajectory(body)
		if err != nil || mustCanonical(t, back) != mustCanonical(t, tr) {
			t.Errorf("after %d turns the record came back otherwise: %v", turn, err)
		}
	}
}

func TestASoundSandboxIsToldFromABrokenOne(t *testing.T) {
	ctx := context.Background()
	e := newFakeEngine(mixedScript)
	if err := newTestAgent(t, e, &fakeRunner{}, testConfig()).Sound(ctx); err != nil {
		t.Error(err)
	}
	burning := &fakeRunner{fail: func(sandbox.Call) error { return fmt.Errorf("%w: the pool burns", sandbox.ErrInfrastructure) }}
	for _, r := range []Runner{burning, statusRunner(sandbox.Killed), statusRunner("odd")} {
		if err := newTestAgent(t, e, r, testConfig()).Sound(ctx); !IsInfra(err) {
			t.Errorf("error %v, want one of infrastructure", err)
		}
	}
}

func TestAnEngineWithoutEntropiesGivesTrajectoriesWithoutThem(t *testing.T) {
	mute := spoiledEngine{newFakeEngine(turns(callText("print(1)"), answerText("408"))), func(g *engine.Generation) { g.Entropy = nil }}
	var records [][]byte
	tr := mustRun(t, newTestAgent(t, mute, &fakeRunner{}, testConfig()), testTask(0), func(r TurnRecord) error {
		body, err := r.Encode()
		records = append(records, body)
		return err
	})
	body, err := tr.Encode()
	if err != nil || tr.Entropy != nil || len(tr.Turns) != 2 {
		t.Fatalf("entropies %v in %d turns (%v)", tr.Entropy, len(tr.Turns), err)
	}
	back, err := DecodeTrajectory(body)
	if err != nil || back.Entropy != nil || !slices.Equal(back.LogProbs, tr.LogProbs) {
		t.Errorf("the record came back with entropies %v: %v", back.Entropy, err)
	}
	again, err := Rebuild(testTask(0), decodeJournal(t, records))
	if err != nil || again.Entropy != nil || !slices.Equal(again.IDs, tr.IDs) {
		t.Errorf("rebuilt with entropies %v: %v", again.Entropy, err)
	}
	mixed := decodeJournal(t, records)
	mixed[1].Entropy = make([]float32, len(mixed[1].IDs))
	if _, err := Rebuild(testTask(0), mixed); err == nil {
		t.Error("a trajectory has entropies in one turn only")
	}
}

func TestTrap25EveryTaskComesToExactlyOneEnd(t *testing.T) {
	const n = 32
	e := newFakeEngine(mixedScript)
	var failures atomic.Int32
	e.fail = func(r engine.Request) error {
		if r.Address.Sample%5 == 0 && failures.Add(1)%3 != 0 {
			return errors.New("no route")
		}
		return nil
	}
	var mu sync.Mutex
	ends := map[int]int{}
	unfinished, err := newTestAgent(t, e, &fakeRunner{}, testConfig()).RunAll(t.Context(), tasks(n), Many{InFlight: 7, Runs: 2, OnEnd: func(i int, tr Trajectory) error {
		mu.Lock()
		defer mu.Unlock()
		ends[i]++
		if tr.Key != testTask(i).Key() || tr.Stop == "" {
			return fmt.Errorf("task %d ended as %s with stop %q", i, tr.Key, tr.Stop)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for i, u := range unfinished {
		if u.Err != nil {
			left++
			ends[i]++
		}
		if ends[i] != 1 {
			t.Errorf("task %d came to %d ends", i, ends[i])
		}
	}
	if left == 0 || left == n {
		t.Errorf("%d of %d tasks were left unfinished; want some", left, n)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("called off")
	cancel(cause)
	r := &fakeRunner{delay: func(sandbox.Call) time.Duration { return time.Hour }}
	none, err := newTestAgent(t, newFakeEngine(turns(callText("print(1)"))), r, testConfig()).RunAll(ctx, tasks(2), Many{Runs: 2})
	if !errors.Is(err, cause) || IsInfra(none[0].Err) || IsInfra(none[1].Err) {
		t.Errorf("called off: error %v, tasks %+v; want its cause, and no failure of the infrastructure", err, none)
	}
}
