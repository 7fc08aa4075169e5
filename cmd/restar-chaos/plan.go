package main

import (
	"time"

	"github.com/restar-rl/restar/kernels/philox"
)

// victim is what a kill takes down.
type victim string

// The processes of a run, each alone, and all of them at once.
const (
	theTree       victim = "the whole tree"
	theSupervisor victim = "supervisor"
	theServer     victim = "devserver"
	theTrainer    victim = "trainer worker"
	theRollout    victim = "rollout worker"
	theSandbox    victim = "sandbox zygote"
	theRank       victim = "trainer's second rank"
)

// everyone is the order in which seeded kills choose their victims, so that a few kills reach every kind.
var everyone = []victim{theRollout, theTree, theTrainer, theServer, theSandbox, theSupervisor, theRank}

// kill is one planned kill: at a moment of the run, or at a named point that a worker passes.
type kill struct {
	victim victim
	after  time.Duration // of the run's own time; kills at named points have none
	point  string        // in the form that RESTAR_KILL_AT takes
}

// namedPoints are the moments at which a crash is most likely to lose or repeat work. Each happens once.
var namedPoints = []kill{
	{victim: theRollout, point: "after-put:/rollouts/000001/"}, // turns are durable, the attempt does not know it
	{victim: theTrainer, point: "before-put:/metrics/000000"},  // applied and published, not recorded
	{victim: theTrainer, point: "after-put:/weights/"},         // published, not recorded
	{victim: theTrainer, point: "before-apply:stage1-000002"},  // the step is about to run
	{victim: theTrainer, point: "after-apply:stage1-000003"},   // the step ran in memory only
	{victim: theRollout, point: "before-put:/batches/"},        // chosen, not durable
	{victim: theTrainer, point: "before-complete:stage2"},      // durable, the server does not know it
	{victim: theTrainer, point: "before-put:/checkpoints/"},    // a checkpoint without its manifest
}

// plan is the named points, and n kills spread over the run, each at a seeded moment of its own stretch.
func plan(seed uint64, n int, length time.Duration) []kill {
	key := philox.NewKey(seed)
	kills := append([]kill(nil), namedPoints...)
	for i := range n {
		u := key.Uniform(philox.Address{Purpose: philox.Shuffle, Ordinal: i})
		share := (float64(i) + u) / float64(n) * lastKill
		kills = append(kills, kill{victim: everyone[i%len(everyone)], after: time.Duration(share * float64(length))})
	}
	return kills
}

// lastKill keeps the last seeded kill away from the end, where a run may be over before it comes.
const lastKill = 0.9
