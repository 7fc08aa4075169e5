package main

import (
	"os/exec"
	"testing"
	"time"
)

func TestHalfOfTheKillsAreSeededAndReachEveryProcess(t *testing.T) {
	kills := plan(1, len(namedPoints), time.Minute)
	seeded, points := split(kills)
	if len(seeded) != 8 || len(points) != 8 {
		t.Fatalf("%d seeded kills and %d at named points, want 8 of each", len(seeded), len(points))
	}
	reached := map[victim]bool{}
	for i, k := range seeded {
		reached[k.victim] = true
		if i > 0 && k.after <= seeded[i-1].after {
			t.Errorf("kill %d comes at %v, before the one before", i, k.after)
		}
	}
	if len(reached) != len(everyone) {
		t.Errorf("the kills reach %v, want every kind of process", reached)
	}
}

func TestAKillOfTheTreeCountsOnlyWhenTheCommandDiedOfIt(t *testing.T) {
	for _, died := range []bool{true, false} {
		sleep := exec.Command("sleep", "60")
		if err := sleep.Start(); err != nil {
			t.Fatal(err)
		}
		tree := kill{victim: theTree}
		h := &hunter{trial: &trial{dir: t.TempDir()}, begin: time.Now(), left: []kill{tree}}
		h.kill(sleep.Process.Pid)
		if !wasKilled(sleep.Wait()) || len(h.done) != 1 {
			t.Fatalf("the process was not killed; %v", h.done)
		}
		h.confirm(died)
		if counted := len(h.done) == 1 && len(h.left) == 0; counted != died {
			t.Errorf("died of it: %v, counted: %v (%d left)", died, counted, len(h.left))
		}
	}
	h := &hunter{trial: &trial{dir: t.TempDir()}}
	if h.strike(theTree, 1<<22+1) || len(h.done) != 0 {
		t.Error("a kill without a supervisor counts")
	}
}
