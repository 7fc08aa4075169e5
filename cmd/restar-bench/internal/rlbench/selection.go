package rlbench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/train"
)

// rStar2-Agent samples 32 trajectories a prompt and keeps 16 (§5.1).
const (
	groupSize = 32
	groupKeep = 16
)

// tokenBytes are what a trajectory holds of a token: id, mask, log-prob and entropy.
const tokenBytes = 4 + 1 + 4 + 4

// selection chooses a batch by Resample-on-Correct, encodes it, reads it back and packs every pass of its step: everything between
// the trajectories and the first matrix product.
func (b *bench) selection(context.Context) error {
	groups := b.trajectories()
	size := float64(b.Trajectories) * float64(b.Tokens) * tokenBytes
	rec := recipe.Defaults()
	rec.Seed, rec.RL.LR = 1, 1e-6
	rec.Stages = []recipe.Stage{{Name: "stage1", Steps: 1, Prompts: len(groups), Samples: groupSize, Keep: groupKeep, ResponseTokens: b.Tokens, Turns: 10}}
	peak := watchHeap()
	began, busy := time.Now(), cpu()
	bodies, err := activities.Choose(rec, activities.SelectInput{Run: runName, Stage: "stage1", Step: 1, Prompts: len(groups)}, groups)
	if err != nil {
		return err
	}
	chosen := time.Since(began)
	sequences, packed := 0, 0
	for i, body := range bodies {
		batch, err := activities.Chosen(body)
		if err != nil {
			return err
		}
		bodies[i] = nil
		passes, err := train.Passes(batch, train.Objective{Kind: train.PolicyGradient, Clip: rl.Clip{Low: 0.2, High: 0.28}, Norm: rl.TokenMean}, train.Plan{})
		if err != nil {
			return err
		}
		sequences += len(batch.Sequences)
		for p := range passes {
			packed += len(p.IDs)
		}
	}
	took, used, grew := time.Since(began), cpu()-busy, peak()
	runtime.KeepAlive(groups)
	if want := len(groups) * groupKeep; sequences != want || packed != want*b.Tokens {
		return fmt.Errorf("%d sequences of %d tokens were packed, want %d of %d", sequences, packed, want, want*b.Tokens)
	}
	f := b.figures
	f["select_pack_seconds"], f["select_seconds"] = took.Seconds(), chosen.Seconds()
	f["select_pack_cpu_seconds"] = used.Seconds()
	f["select_pack_memory_ratio"], f["select_pack_trajectory_mib"] = grew/size, size/(1<<20)
	f["select_pack_trajectories"], f["select_pack_tokens"] = float64(b.Trajectories), float64(b.Tokens)
	return nil
}

// trajectories makes groups of mixed rewards with several turns and some tool errors. Their content does not matter; their shape does.
func (b *bench) trajectories() [][]agent.Trajectory {
	groups := make([][]agent.Trajectory, b.Trajectories/groupSize)
	for g := range groups {
		groups[g] = make([]agent.Trajectory, groupSize)
		for s := range groups[g] {
			groups[g][s] = b.trajectory(g, s)
		}
	}
	return groups
}

// toolTokens and turnTokens are the lengths of a tool block and of the turn and the block together.
const (
	promptTokens = 32
	toolTokens   = 8
	turnTokens   = 1024
)

func (b *bench) trajectory(group, sample int) agent.Trajectory {
	n := b.Tokens
	t := agent.Trajectory{
		Key: fmt.Sprintf("%d/%d", group, sample), Address: philox.Address{Purpose: philox.Rollout, Ordinal: group, Sample: sample}, PromptLen: promptTokens,
		IDs: make([]int32, n), Mask: make([]uint8, n), LogProbs: make([]float32, n), Entropy: make([]float32, n), Version: "stage1-000000",
		Stop: agent.Answered, Answers: agent.Answers{Open: 1, Close: 1, Pairs: 1}, Verdict: agent.Verdict{Outcome: agent.Wrong},
	}
	if (group+sample)%3 == 0 { // a third is right: more would be kept than the rule's half of each kind
		t.Reward, t.Verdict.Outcome = 1, agent.Correct
	}
	for at := promptTokens; at < n; at += turnTokens {
		end := min(n, at+turnTokens-toolTokens)
		if n-at <= turnTokens {
			end = n
		}
		turn := agent.Turn{Start: at, End: end, Finish: engine.FinishStop}
		if end < n {
			outcome := agent.ToolOutcome{Type: agent.OK, Call: fmt.Sprint(at)}
			if (at/turnTokens+sample)%5 == 0 {
				outcome.Type = agent.ExecError
			}
			turn.Calls = []agent.ToolOutcome{outcome}
		}
		t.Turns = append(t.Turns, turn)
		for i := at; i < end; i++ {
			t.Mask[i], t.LogProbs[i], t.Entropy[i] = 1, -0.5, 0.5
		}
	}
	for i := range t.IDs {
		t.IDs[i] = int32((i*31 + sample*17 + group) % 1000)
	}
	return t
}

// cpu is the CPU time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heapEvery is how often the heap is looked at: far shorter than any of the copies that it is to see.
const heapEvery = 2 * time.Millisecond

// watchHeap begins to watch the heap, garbage included, and returns what ends it and tells by how many bytes it grew at most.
func watchHeap() func() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	bytes := func() float64 {
		metrics.Read(sample)
		return float64(sample[0].Value.Uint64() + sample[1].Value.Uint64())
	}
	debug.FreeOSMemory() // older garbage, which would hide some of the growth
	begin := bytes()
	stop, peak := make(chan struct{}), make(chan float64)
	go func() {
		most := begin
		tick := time.NewTicker(heapEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				most = max(most, bytes())
			case <-stop:
				peak <- max(most, bytes()) - begin
				return
			}
		}
	}()
	return func() float64 {
		close(stop)
		return <-peak
	}
}
