package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sleepLong is seen to run, by its command line.
const sleepLong = "import os\nos.execv('/usr/bin/sleep', ['sleep', '1000'])"

// awaitSleeping waits until so many programs sleepLong run.
func awaitSleeping(t *testing.T, p *Pool, n int) {
	t.Helper()
	for end := time.Now().Add(testDeadline); ; time.Sleep(time.Millisecond) {
		run := 0
		for _, pid := range tree(p) {
			if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); string(b) == "sleep\x001000\x00" {
				run++
			}
		}
		if run == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d programs run, expected %d", run, n)
		}
	}
}

func TestADeadZygoteIsReplacedAndItsCallsAreInfrastructureErrors(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1, Warm: 2})
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			r, err := p.Run(deadline(t), Call{ID: "victim", Code: sleepLong, Limits: Limits{Wall: time.Hour}})
			if !errors.Is(err, ErrInfrastructure) || r.Status != "" {
				t.Errorf("got %+v, %v, expected an infrastructure error and no status", r, err)
			}
		})
	}
	awaitSleeping(t, p, 2)
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

// A zygote that answers out of turn is ended, also while calls need every core, and the calls that wait get slots of the next one.
func TestABrokenZygoteIsReplacedBesideARunningCall(t *testing.T) {
	p := poolOf(t, 2, Options{Zygotes: 1, Warm: 1, MaxRunning: 2})
	awaitReady(t, p, 1)
	var victim sync.WaitGroup
	victim.Go(func() {
		if r, err := p.Run(deadline(t), Call{ID: "victim", Code: sleepLong, Limits: Limits{Wall: time.Hour}}); !errors.Is(err, ErrInfrastructure) {
			t.Errorf("got %+v, %v, expected an infrastructure error", r, err)
		}
	})
	awaitSleeping(t, p, 1)
	z := p.shelves[0].zygote(0)
	seat, err := p.seats.take()
	if err != nil {
		t.Fatal(err)
	}
	stray := &slot{zygote: z, seat: seat, limits: p.opt.Limits, pidfd: -1}
	defer stray.close()
	child, err := stray.pipes(oneCall)
	defer closeAll(child)
	if err != nil {
		t.Fatal(err)
	}
	msg, err := binary.Append(nil, binary.LittleEndian, stray.request(oneCall)) // nobody waits for its answer
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := z.control.WriteMsgUnix(msg, unix.UnixRights(append(child, seat.procs()...)...), nil); err != nil {
		t.Fatal(err)
	}
	if r := run(t, p, "print('next')"); r.Stdout != "next\n" {
		t.Errorf("got %+v", r)
	}
	victim.Wait()
	if s := p.Status(); s.Restarts != 1 || s.Lost != 1 {
		t.Errorf("status is %+v, expected one restart and one lost call", s)
	}
}

// With one of two zygotes stopped, calls are served by the other, and one that waits for the stopped one can be cancelled.
func TestAStoppedZygoteHoldsUpNobodyElse(t *testing.T) {
	p := poolOf(t, 2, Options{Zygotes: 2, Warm: 1, MaxRunning: 4})
	awaitReady(t, p, 1)
	z := p.shelves[0].zygote(0)
	z.turn <- struct{}{} // as a fork that gets no answer
	ctx, cancel := context.WithCancel(deadline(t))
	var sleeper sync.WaitGroup
	sleeper.Go(func() {
		_, _ = p.Run(ctx, Call{Code: "import time\ntime.sleep(1000)", Limits: Limits{Wall: time.Hour}})
	})
	for p.Status().Running == 0 {
		time.Sleep(time.Millisecond)
	}
	for i := range 6 {
		if r := run(t, p, fmt.Sprint("print(", i, ")")); r.Stdout != fmt.Sprintln(i) {
			t.Errorf("got %+v", r)
		}
	}
	other := p.shelves[0].zygote(1)
	other.turn <- struct{}{}
	for sl := p.shelves[0].next(); sl != nil; sl = p.shelves[0].next() {
		p.discard(sl)
	}
	waiting, giveUp := context.WithCancel(deadline(t))
	time.AfterFunc(20*time.Millisecond, giveUp)
	if _, err := p.Run(waiting, Call{Code: "1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected context.Canceled", err)
	}
	<-other.turn
	<-z.turn
	cancel()
	sleeper.Wait()
}
