package activities

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/rl"
)

// choosing gives the toy's first stage another algorithm and groups from ordinal 30 on.
func choosing(t *testing.T, algorithm string, groups ...[]ended) *chooser {
	t.Helper()
	text := strings.Replace(toyText, "rl: {", "rl: {"+algorithm+", ", 1)
	text = strings.NewReplacer("keep: 8", "keep: 16", "samples: 4, keep: 2", "samples: 4, keep: 4").Replace(text)
	rec, err := recipe.Parse([]byte(text))
	must(t, err)
	alg, err := rec.RL.Parameters()
	must(t, err)
	in := selectOf(len(groups))
	in.Prompts = 3
	c := newChooser(rec, alg, in)
	for i, g := range groups {
		var all []agent.Trajectory
		for sample, e := range g {
			all = append(all, e.trajectory(30+i, sample))
		}
		c.read(30+i, all)
	}
	return c
}

func chosen(t *testing.T, c *chooser) []batch {
	t.Helper()
	again, err := c.choose()
	must(t, err)
	if again {
		t.Fatal("another round is asked for")
	}
	return c.parts()
}

func mixture(rights int) []ended {
	return append(times(rights, right()), times(16-rights, wrong())...)
}

func TestPlainGRPOTrainsOnEverySampleOfMixedGroups(t *testing.T) {
	parts := chosen(t, choosing(t, "algorithm: grpo", mixture(4), mixture(16), mixture(0)))
	if len(parts) != 1 || len(parts[0].Batch.Sequences) != 16 {
		t.Fatalf("%d batches, the first of %d sequences; want one of 16", len(parts), len(parts[0].Batch.Sequences))
	}
}

func TestDeepSeekMathKeepsEqualGroupsAtAdvantageZero(t *testing.T) {
	b := chosen(t, choosing(t, "algorithm: deepseekmath", mixture(4), mixture(16), mixture(0)))[0]
	if len(b.Batch.Sequences) != 48 || b.AllCorrect != 1 || b.AllWrong != 1 {
		t.Fatalf("%d sequences, want all 48", len(b.Batch.Sequences))
	}
	for _, s := range b.Batch.Sequences[16:] {
		if s.Advantage != 0 {
			t.Errorf("sequence %d of an equal group has advantage %v", s.Ordinal, s.Advantage)
		}
	}
}

func TestTrap14DynamicSamplingAsksUntilTheBatchIsFullOrItsRoundsAreOver(t *testing.T) {
	c := choosing(t, "algorithm: dapo, overlong_ramp_tokens: 50, updates_per_round: 3, max_rounds: 3", mixture(4), mixture(16), mixture(2))
	if again, err := c.choose(); err != nil || !again {
		t.Fatalf("two mixed groups of three wanted: again %v, %v", again, err)
	}
	c = choosing(t, "algorithm: dapo, overlong_ramp_tokens: 50, updates_per_round: 3, max_rounds: 3", mixture(4), mixture(16), mixture(2))
	c.in.Earlier = make([]Round, 2)
	if again, err := c.choose(); err != nil || again || len(c.parts()) != 2 {
		t.Fatalf("the third round is the last: again %v, %v", again, err)
	}
	c = choosing(t, "algorithm: dapo, overlong_ramp_tokens: 50, updates_per_round: 3", mixture(4), mixture(0), mixture(2), mixture(5), mixture(7))
	parts := chosen(t, c)
	if len(parts) != 3 || parts[0].Surplus != 1 {
		t.Fatalf("%d updates, %d surplus groups; want 3 and 1", len(parts), parts[0].Surplus)
	}
	for u, b := range parts { // one group each: 30, 32 and 33
		want := []int32{30, 32, 33}[u]
		if b.Update != u || b.Updates != 3 || b.Step != int64(1+u) || len(b.Batch.Sequences) != 16 || b.Batch.Sequences[0].IDs[2] != want {
			t.Errorf("update %d: %d of %d, step %d, %d sequences of ordinal %d", u, b.Update, b.Updates, b.Step, len(b.Batch.Sequences), b.Batch.Sequences[0].IDs[2])
		}
	}
}

func TestTrap12OverlongSamplesAreShapedOrLeftOutAfterTheyCounted(t *testing.T) {
	long := wrong()
	long.truncated = true
	group := append(append(times(4, right()), times(4, wrong())...), times(8, long)...)
	filtered := chosen(t, choosing(t, "algorithm: grpo, overlong: filter", group))[0]
	plain := chosen(t, choosing(t, "algorithm: grpo", group))[0]
	if len(filtered.Batch.Sequences) != 8 || filtered.Filtered != 8 {
		t.Fatalf("%d sequences, %d left out; want 8 and 8", len(filtered.Batch.Sequences), filtered.Filtered)
	}
	for i, s := range filtered.Batch.Sequences {
		if s.Advantage != plain.Batch.Sequences[i].Advantage {
			t.Errorf("advantage %v, want %v: the truncated ones count in the mean", s.Advantage, plain.Batch.Sequences[i].Advantage)
		}
	}
	// Every response has 2 tokens of a limit of 400: with a ramp of 400, 2/400 are taken off each, which no advantage sees.
	soft := chosen(t, choosing(t, "algorithm: grpo, overlong: soft, overlong_ramp_tokens: 400", group))[0]
	if a, b := soft.Batch.Sequences[0].Advantage, plain.Batch.Sequences[0].Advantage; math.Abs(float64(a-b)) > 1e-6 {
		t.Errorf("equal penalties changed an advantage from %v to %v", b, a)
	}
}

func TestRejectionSamplingImitatesDistinctCorrectSamples(t *testing.T) {
	c := choosing(t, "algorithm: rft, correct_per_problem: 3", mixture(5), mixture(0), mixture(16), mixture(2))
	b := chosen(t, c)[0]
	var got []int32
	for _, s := range b.Batch.Sequences {
		got = append(got, s.IDs[2]*100+s.IDs[3])
	}
	if want := []int32{3000, 3001, 3002, 3200, 3201, 3202, 3300, 3301}; !slices.Equal(got, want) {
		t.Errorf("imitates %v, want %v", got, want)
	}
	if o := objective(c.alg); o.Kind != "sft" {
		t.Errorf("objective %+v, want the likelihood", o)
	}
}

func TestOnlyUncertainTokensKeepTheirMask(t *testing.T) {
	c := choosing(t, "algorithm: grpo, high_entropy_share: 0.5", mixture(8))
	for i := range c.groups[0].all {
		c.groups[0].all[i].Entropy = []float32{0, 0, 0.1, 0.7}
	}
	for _, s := range chosen(t, c)[0].Batch.Sequences {
		if !slices.Equal(s.Mask, []uint8{0, 0, 0, 1}) || s.LogProbs[2] != 0 || s.LogProbs[3] == 0 {
			t.Fatalf("mask %v, log-probs %v; want the last token only", s.Mask, s.LogProbs)
		}
	}
}

func TestAGroupWithoutATokenInTheLossIsNoUpdate(t *testing.T) {
	c := choosing(t, "algorithm: grpo, high_entropy_share: 0.4, updates_per_round: 2", mixture(8), mixture(8)) // of 2 tokens none
	for i := range c.groups[1].all {
		x := &c.groups[1].all[i]
		x.IDs, x.Mask = append(x.IDs, 5), append(x.Mask, 1)
		x.LogProbs, x.Entropy = append(x.LogProbs, -1), append(x.Entropy, 1)
	}
	parts := chosen(t, c)
	if len(parts) != 1 || len(parts[0].Batch.Sequences) != 16 || parts[0].Tokenless != 16 || parts[0].Batch.Sequences[0].IDs[2] != 31 {
		t.Fatalf("%d updates, %d sequences, %d samples without a token; want one update of the 16 of ordinal 31", len(parts), len(parts[0].Batch.Sequences), parts[0].Tokenless)
	}
	if parts = chosen(t, choosing(t, "algorithm: grpo, high_entropy_share: 0.4", mixture(8))); len(parts[0].Batch.Sequences) != 0 {
		t.Fatalf("%d sequences without a token to train on, want an empty batch", len(parts[0].Batch.Sequences))
	}
}

func TestAReferenceIsTheStagesFirstPolicyOrTheLastRefresh(t *testing.T) {
	for _, c := range []struct{ refresh, step, want int64 }{{0, 11, 10}, {0, 500, 10}, {5, 11, 10}, {5, 15, 10}, {5, 16, 15}, {5, 27, 25}} {
		if got := referenceStep(rl.Algorithm{KLRefresh: int(c.refresh)}, 10, c.step); got != c.want {
			t.Errorf("refresh every %d: reference of step %d is %d, want %d", c.refresh, c.step, got, c.want)
		}
	}
}

// The oracle is the definition: normalise all step rewards of the group, then sum those that end at or after the token.
func TestProcessSupervisionRewardsTheCallsOfEveryTurn(t *testing.T) {
	c := choosing(t, "algorithm: deepseekmath, supervision: process", mixture(1))
	all := c.groups[0].all
	two := &all[0] // prompt 2, a turn of one token whose call fails, two tool tokens, a turn of one token that is right
	two.IDs, two.Mask, two.LogProbs, two.Entropy = []int32{1, 2, 3, 4, 5, 6}, []uint8{0, 0, 1, 0, 0, 1}, []float32{0, 0, -1, 0, 0, -1}, make([]float32, 6)
	two.Turns = []agent.Turn{
		{Start: 2, End: 3, Finish: "stop", Calls: []agent.ToolOutcome{{Type: agent.ExecError}, {Type: agent.NotRun}}},
		{Start: 5, End: 6, Finish: "stop"},
	}
	sequences := chosen(t, c)[0].Batch.Sequences
	rewards := append([]float64{0, 1}, make([]float64, 15)...) // failed call, right answer, 15 wrong answers
	mean, sq := 1./17, 0.
	for _, r := range rewards {
		sq += (r - mean) * (r - mean)
	}
	std := math.Sqrt(sq/16) + 1e-6
	bad, good := -mean/std, (1-mean)/std
	want := []float64{0, 0, bad + good, good, good, good}
	for i, w := range want {
		if got := float64(sequences[0].Advantages[i]); math.Abs(got-w) > 1e-6 {
			t.Errorf("token %d has advantage %v, want %v", i, got, w)
		}
	}
	if got := float64(sequences[1].Advantages[3]); math.Abs(got-bad) > 1e-6 {
		t.Errorf("a wrong answer has advantage %v, want %v", got, bad)
	}
}

func TestAGroupOfEqualStepsTeachesNothingUnderProcessSupervision(t *testing.T) {
	b := chosen(t, choosing(t, "algorithm: deepseekmath, supervision: process", mixture(0)))[0]
	for _, s := range b.Batch.Sequences {
		for _, a := range s.Advantages {
			if a != 0 {
				t.Fatalf("sequence %d has advantage %v, want 0", s.Ordinal, a)
			}
		}
	}
}
