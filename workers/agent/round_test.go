package agent

import (
	"context"
	"hash/crc32"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/train"
)

// chosenBatch is what GRPO-RoC makes of the groups of a round.
func chosenBatch(t *testing.T, all []Trajectory, size, keep int) train.Batch {
	t.Helper()
	var b train.Batch
	for g := 0; g*size < len(all); g++ {
		group := all[g*size : (g+1)*size]
		samples := make([]rl.Sample, size)
		for i := range group {
			c := group[i].Counts()
			samples[i] = rl.Sample{Index: i, Reward: group[i].Reward, Calls: c.Calls, CallErrors: c.Errors, Turns: c.Turns,
				AnswerOpen: group[i].Answers.Open, AnswerClose: group[i].Answers.Close, AnswerPairs: group[i].Answers.Pairs}
		}
		if rl.Classify(samples) != rl.GroupMixed {
			continue
		}
		chosen, err := rl.Select(samples, keep, rl.SelectOptions{Method: rl.RoCPaper}, func(i int) float64 {
			return philox.NewKey(11).Uniform(philox.Address{Purpose: philox.Select, Ordinal: g, Sample: i})
		})
		if err != nil {
			t.Fatal(err)
		}
		var rewards []float64
		for _, k := range chosen.Kept {
			rewards = append(rewards, samples[k].Reward)
		}
		advantages, _, err := rl.Advantages(rewards, rl.MeanStd)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range chosen.Kept {
			tr := group[k]
			b.Sequences = append(b.Sequences, train.Sequence{Ordinal: g*size + k, IDs: tr.IDs, Mask: tr.Mask, LogProbs: tr.LogProbs, Advantage: float32(advantages[i])})
		}
	}
	return b
}

func TestTrap05ARoundFromPromptsToWeightsIsAPureFunctionWithARatioOfExactlyOne(t *testing.T) {
	const size = 8
	var list []Task
	for g := range 8 {
		for s := range size {
			task := callerTask(g, s)
			task.Judge = func(_ context.Context, text string) (Verdict, error) { // any rule that tells the samples of a group apart
				return Verdict{Outcome: map[bool]Outcome{true: Correct, false: Wrong}[crc32.ChecksumIEEE([]byte(text))%3 == 0]}, nil
			}
			list = append(list, task)
		}
	}
	type result struct {
		digest  string
		metrics train.Metrics
	}
	round := func(inflight, blocks int, plan train.Plan) result {
		m, err := caller()
		if err != nil {
			t.Fatal(err)
		}
		var mine *model.Model
		if mine, err = m.Clone(); err != nil {
			t.Fatal(err)
		}
		b := chosenBatch(t, inFlight(t, mine, list, inflight, blocks), size, size/2)
		s := train.NewState(mine)
		s.Plan = plan
		metrics, err := train.Step(t.Context(), s, b, 1, train.Objective{Kind: train.PolicyGradient, Clip: rl.Clip{Low: 0.2, High: 0.28}},
			train.Optimizer{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, ClipNorm: 1})
		if err != nil {
			t.Fatal(err)
		}
		return result{s.WeightsDigest(), metrics}
	}
	want := round(0, 96, train.Plan{Workers: 2, MicroTokens: 300})
	if m := want.metrics; m.RatioMax != 1 || m.KL != 0 || m.ClipFracLow != 0 || m.ClipFracHigh != 0 || m.GradNorm == 0 || m.Sequences < size {
		t.Errorf("on its own trajectories: %+v, want a ratio of exactly 1, no clipping and a gradient of %d sequences or more", m, size)
	}
	if got := round(3, 20, train.Plan{Workers: 1, MicroTokens: 1 << 30}); got != want {
		t.Errorf("three in flight and one micro-batch give %+v, all in flight and many %+v", got, want)
	}
}
