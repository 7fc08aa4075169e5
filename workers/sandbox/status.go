package sandbox

import (
	"sync/atomic"
	"time"
)

// PoolStatus is a pool's state at one moment and what it has done since it started.
type PoolStatus struct {
	Tier        Tier
	Reason      string         // why the tier is not A, "" in tier A
	Zygotes     int            // alive
	Ready       int            // slots waiting for a call
	ByProfile   map[string]int // Ready of each profile
	Running     int            // calls and cells
	Queued      int
	Sessions    int   // open
	MaxRunning  int   // capacity
	MaxSessions int   // capacity
	Calls       int64 // calls and cells that ended with a Result
	Lost        int64 // and those that ended with an infrastructure error
	Restarts    int64 // zygotes started again
	Totals      Totals
	Preflight   Preflight
}

// Totals adds up what ended calls and cells cost. CPU and faults of a call that was killed are not known to the last bit.
type Totals struct {
	ByStatus map[Status]int64
	CallCPU  time.Duration // of the programs' trees
	InitCPU  time.Duration // of building their namespaces and reaping them
	Faults   int64         // minor page faults of the programs' trees and inits
	Run      time.Duration // wall time of calls
	Queue    time.Duration // wall time before them
	Spawns   int64         // slots forked
	SpawnAll time.Duration // wall time of forking them, ahead of the calls
}

// Preflight is the newest run of the canaries.
type Preflight struct {
	At  time.Time // zero before the first
	Err error     // the holes it found, nil when every layer holds
}

// counters are a pool's sums. The zero value is ready.
type counters struct {
	queued, calls, lost, restarts atomic.Int64
	statuses                      [len(statuses)]atomic.Int64
	callCPU, initCPU, run, queue  atomic.Int64 // ns
	faults, spawned, spawning     atomic.Int64
}

// statuses orders the ends of programs.
var statuses = [...]Status{Success, Error, Timeout, OOM, Killed, OutputLimit}

func (c *counters) spawn(d time.Duration) {
	c.spawned.Add(1)
	c.spawning.Add(int64(d))
}

// end counts one call or cell.
func (c *counters) end(r Result) {
	c.calls.Add(1)
	for i, s := range statuses {
		if s == r.Status {
			c.statuses[i].Add(1)
		}
	}
	c.callCPU.Add(int64(r.CPU))
	c.initCPU.Add(int64(r.InitCPU))
	c.faults.Add(r.Faults)
	c.run.Add(int64(r.Wall))
	c.queue.Add(int64(r.Queue))
}

func (c *counters) totals() Totals {
	t := Totals{ByStatus: map[Status]int64{}, CallCPU: time.Duration(c.callCPU.Load()), InitCPU: time.Duration(c.initCPU.Load()),
		Faults: c.faults.Load(), Run: time.Duration(c.run.Load()), Queue: time.Duration(c.queue.Load()), Spawns: c.spawned.Load(),
		SpawnAll: time.Duration(c.spawning.Load())}
	for i, s := range statuses {
		t.ByStatus[s] = c.statuses[i].Load()
	}
	return t
}

// Status returns the pool's state.
func (p *Pool) Status() PoolStatus {
	s := PoolStatus{Tier: p.tier, Reason: p.reason, ByProfile: map[string]int{}, Running: len(p.running), Queued: int(p.count.queued.Load()),
		Sessions: len(p.sessions), MaxRunning: cap(p.running), MaxSessions: cap(p.sessions), Calls: p.count.calls.Load(),
		Lost: p.count.lost.Load(), Restarts: p.count.restarts.Load(), Totals: p.count.totals(), Preflight: p.check.newest()}
	for _, shelf := range p.shelves {
		s.Zygotes += len(shelf.living())
		s.ByProfile[shelf.profile.name] = len(shelf.ready)
		s.Ready += len(shelf.ready)
	}
	return s
}

// ZygoteCPU is the CPU time the living zygotes have used themselves: preloading, and forking slots.
func (p *Pool) ZygoteCPU() (sum time.Duration) {
	for _, shelf := range p.shelves {
		for _, z := range shelf.living() {
			if s, ok := readProcess(z.cmd.Process.Pid); ok {
				sum += s.own
			}
		}
	}
	return sum
}
