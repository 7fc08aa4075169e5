package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/sandbox"
)

// inFlight samples the trajectories of many groups over one engine whose cache is too small for all.
func inFlight(t *testing.T, m *model.Model, list []Task, at, blocks int) []Trajectory {
	t.Helper()
	e, err := engine.New(m, "v1", engine.Options{Blocks: blocks, MaxRows: 48, MaxPrefillTokens: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := &fakeRunner{delay: func(c sandbox.Call) time.Duration { return time.Duration(c.Seed%2000) * time.Microsecond }}
	a := newTestAgent(t, e, r, callerConfig())
	out := make([]Trajectory, len(list))
	unfinished, err := a.RunAll(t.Context(), list, Many{InFlight: at, Runs: 1, OnEnd: func(i int, tr Trajectory) error { out[i] = tr; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range unfinished {
		if u.Err != nil {
			t.Fatal(u.Err)
		}
	}
	return out
}

func callerTasks() []Task {
	var list []Task
	for g := range groups {
		for s := range groupSize {
			list = append(list, callerTask(g, s))
		}
	}
	return list
}

func TestTrajectoriesAreTheSameForOneGroupInFlightOrThirtyTwo(t *testing.T) {
	m, err := caller()
	if err != nil {
		t.Fatal(err)
	}
	list := callerTasks()
	all := inFlight(t, m, list, 0, 96)
	for g := range groups {
		alone := inFlight(t, m, list[g*groupSize:(g+1)*groupSize], 0, 40)
		for s, tr := range alone {
			if mustCanonical(t, tr) != mustCanonical(t, all[g*groupSize+s]) {
				t.Errorf("sample %d of group %d differs among %d groups from alone", s, g, groups)
			}
		}
	}
	for i, tr := range inFlight(t, m, list[:16], 1, 12) {
		if mustCanonical(t, tr) != mustCanonical(t, all[i]) {
			t.Errorf("trajectory %d differs one at a time", i)
		}
	}
}

func TestACrashAfterAnyTurnGivesTheSameTokensOfARealModel(t *testing.T) {
	m, err := caller()
	if err != nil {
		t.Fatal(err)
	}
	list := callerTasks()[:24]
	want := inFlight(t, m, list, 0, 96)
	crashes := 0
	for turn := range calledTurns { // everything dies after this turn of each, and goes on in another engine
		var resumed []Task
		for i, task := range list {
			n := min(turn, len(want[i].Turns))
			if n < len(want[i].Turns) {
				crashes++
			}
			tr, err := Rebuild(task, recordsOf(t, want[i])[:n])
			if err != nil {
				t.Fatal(err)
			}
			task.Resume = &tr
			resumed = append(resumed, task)
		}
		for i, tr := range inFlight(t, m, resumed, 0, 30) {
			if mustCanonical(t, tr) != mustCanonical(t, want[i]) {
				t.Errorf("trajectory %d differs after a crash behind turn %d", i, turn)
			}
		}
	}
	if crashes < 40 {
		t.Errorf("only %d crashes came before an end", crashes)
	}
}

// recordsOf cuts a trajectory into its turns, by way of their stored form.
func recordsOf(t *testing.T, tr Trajectory) []TurnRecord {
	t.Helper()
	var out []TurnRecord
	for i, turn := range tr.Turns {
		r := TurnRecord{Key: tr.Key, Turn: i, IDs: tr.IDs[turn.Start:turn.End], LogProbs: tr.LogProbs[turn.Start:turn.End],
			Entropy: tr.Entropy[turn.Start:turn.End], Finish: turn.Finish, Version: tr.Version, Calls: turn.Calls}
		if i+1 < len(tr.Turns) {
			r.ToolIDs = tr.IDs[turn.End:tr.Turns[i+1].Start]
		} else {
			r.Stop = tr.Stop
		}
		body, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if r, err = DecodeTurnRecord(body); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestTrap15ASampleIsMadeAgainAloneFromItsCoordinates(t *testing.T) {
	m, err := caller()
	if err != nil {
		t.Fatal(err)
	}
	const samples, step = 32, 300
	var list []Task
	for s := range samples {
		task := callerTask(4, s)
		task.Address.Iteration = step
		list = append(list, task)
	}
	all := inFlight(t, m, list, 0, 60)
	if again := inFlight(t, m, list[17:18], 0, 60)[0]; mustCanonical(t, again) != mustCanonical(t, all[17]) {
		t.Error("sample 17 of step 300 is another when made again alone")
	}
	distinct := map[string]bool{}
	for _, tr := range all {
		distinct[fmt.Sprint(tr.LogProbs)] = true
	}
	if len(distinct) < samples*3/4 { // an engine that forgets its seed repeats one sample
		t.Errorf("%d of %d samples of a prompt are distinct", len(distinct), samples)
	}
	for name, change := range map[string]func(*Task){
		"run":       func(t *Task) { t.Seed++ },
		"step":      func(t *Task) { t.Address.Iteration++ },
		"stage":     func(t *Task) { t.Address.Stage++ },
		"purpose":   func(t *Task) { t.Address.Purpose = philox.Eval },
		"prompt":    func(t *Task) { t.Address.Ordinal++ },
		"of prompt": func(t *Task) { t.Address.Sample++ },
	} {
		other := slices.Clone(list)
		same := 0
		for i := range other {
			change(&other[i])
		}
		for i, tr := range inFlight(t, m, other, 0, 60) {
			if slices.Equal(tr.LogProbs, all[i].LogProbs) {
				same++
			}
		}
		if same > samples/4 {
			t.Errorf("another %s draws %d of %d samples again", name, same, samples)
		}
	}
}
