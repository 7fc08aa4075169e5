package sandbox

import (
	"testing"
	"time"
)

func TestTrap23TimeoutsAreTheCallsOwnDoing(t *testing.T) {
	const ms = time.Millisecond
	limits := Limits{CPU: 1000 * ms, Wall: 2000 * ms}
	for _, c := range []struct {
		name    string
		share   time.Duration // CPU time got in each 100 ms
		runs    bool
		want    verdict
		elapsed time.Duration
	}{
		{"a busy loop alone on a core", 100 * ms, true, expired, 1000 * ms},
		{"a busy loop on a busy machine", 20 * ms, true, expired, 5000 * ms},
		{"four processes on four cores", 400 * ms, true, expired, 300 * ms},
		{"a sleeper", 0, false, expired, 2000 * ms},
		{"a busy loop that gets nothing", 1 * ms, true, starved, 20000 * ms},
		{"one that sleeps half of the time it is looked at", 50 * ms, false, expired, 2000 * ms},
	} {
		k, now, got := clock{limits: limits}, time.Duration(0), within
		for got == within {
			now += 100 * ms
			got = k.observe(now, k.cpu+c.share, c.runs)
		}
		if got != c.want || now != c.elapsed {
			t.Errorf("%s: verdict %d after %v, expected %d after %v", c.name, got, now, c.want, c.elapsed)
		}
	}
}

func TestTheClockNeverRunsBackwards(t *testing.T) {
	k := clock{limits: Limits{CPU: time.Second, Wall: time.Second}}
	k.observe(100*time.Millisecond, 80*time.Millisecond, true)
	if k.observe(200*time.Millisecond, 0, true); k.cpu != 80*time.Millisecond {
		t.Errorf("CPU time is %v after a sample that missed a process, expected 80ms", k.cpu)
	}
}
