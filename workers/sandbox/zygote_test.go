package sandbox

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestADeadZygoteIsReplacedAndItsCallsAreInfrastructureErrors(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 2})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			r, err := p.Run(deadline(t), Call{ID: "victim", Code: "import time\ntime.sleep(1000)", Limits: Limits{Wall: time.Hour}})
			if !errors.Is(err, ErrInfrastructure) || r.Status != "" {
				t.Errorf("got %+v, %v, expected an infrastructure error and no status", r, err)
			}
		})
	}
	for p.Status().Running < 2 || len(tree(p)) < 5 { // the zygote, and pairs for two calls
		time.Sleep(time.Millisecond)
	}
	if err := unix.Kill(p.shelves[0].zygote(0).cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	for p.Status().Restarts == 0 { // until its death is seen, a call may still be given one of its slots
		time.Sleep(time.Millisecond)
	}
	if r := run(t, p, "print('again')"); r.Stdout != "again\n" {
		t.Errorf("got %+v", r)
	}
	if s := p.Status(); s.Restarts < 1 || s.Zygotes != 1 || s.Lost != 2 {
		t.Errorf("status is %+v, expected one zygote, restarted, and two lost calls", s)
	}
}

// Zygotes are killed again and again while calls run and wait: each call ends once, with its own result or with an error that
// says it may be repeated, and nothing of a lost one is left.
func TestKilledZygotesUnderLoadLoseNoCallTwice(t *testing.T) {
	callers, kills := 400, 6
	if testing.Short() {
		callers, kills = 100, 3
	}
	p := startPool(t, Options{Zygotes: 2, Warm: 3, MaxRunning: 4})
	var ended, lost atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for {
				r, err := p.Run(deadline(t), Call{ID: fmt.Sprint(i), Code: fmt.Sprintf("import os, time\nif os.fork() == 0: time.sleep(31337)\ntime.sleep(0.01)\nprint(%d)", i)})
				switch {
				case errors.Is(err, ErrInfrastructure) && r.Status == "":
					lost.Add(1)
					continue // as a client does
				case err != nil || r.Status != Success || r.Stdout != fmt.Sprintln(i):
					t.Errorf("call %d: %+v, %v", i, r, err)
				}
				ended.Add(1)
				return
			}
		})
	}
	for i := range kills {
		for int(ended.Load()) < callers*(i+1)/(kills+2) {
			time.Sleep(time.Millisecond)
		}
		if living := p.shelves[0].living(); len(living) > 0 {
			_ = unix.Kill(living[i%len(living)].cmd.Process.Pid, unix.SIGKILL)
		}
	}
	all.Wait()
	s := p.Status()
	if ended.Load() != int64(callers) || s.Calls != ended.Load() || s.Lost != lost.Load() || lost.Load() == 0 || s.Restarts == 0 || s.Queued+s.Running != 0 {
		t.Errorf("%d calls ended and %d were lost, status %+v, expected %d ended, some lost, both counted", ended.Load(), lost.Load(), s, callers)
	}
	if who := sleepers(); len(who) > 0 {
		t.Errorf("processes %v of calls survived", who)
	}
}
