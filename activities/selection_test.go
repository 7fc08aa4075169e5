package activities

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/store"
)

// ended is a finished trajectory in a hand-made journal. Of its calls the first errors fail.
type ended struct {
	outcome       agent.Outcome
	answer        string
	calls, errors int
	truncated     bool
}

func right() ended { return ended{outcome: agent.Correct, answer: "7"} }
func wrong() ended { return ended{outcome: agent.Wrong, answer: "8"} }

// times is n copies of each.
func times(n int, e ended) []ended { return slices.Repeat([]ended{e}, n) }

func (e ended) trajectory(ordinal, sample int) agent.Trajectory {
	t := agent.Trajectory{
		Key: fmt.Sprintf("%d/%d", ordinal, sample), Problem: fmt.Sprintf("p%d", ordinal), PromptLen: 2, Version: "one-000000",
		Address: philox.Address{Purpose: philox.Rollout, Ordinal: ordinal, Sample: sample},
		IDs:     []int32{1, 2, int32(ordinal), int32(sample)}, Mask: []uint8{0, 0, 1, 1},
		LogProbs: []float32{0, 0, -1, -float32(sample + 1)}, Entropy: make([]float32, 4),
		Turns:   []agent.Turn{{Start: 2, End: 4, Finish: engine.FinishStop}},
		Stop:    agent.Answered,
		Verdict: agent.Verdict{Outcome: e.outcome, Answer: e.answer}, Answers: agent.Answers{Open: 1, Close: 1, Pairs: 1},
	}
	if e.outcome == agent.Correct {
		t.Reward = 1
	}
	if e.truncated {
		t.Stop = agent.StopLength
	}
	for i := range e.calls {
		kind := agent.OK
		if i < e.errors {
			kind = agent.ExecError
		}
		t.Turns[0].Calls = append(t.Turns[0].Calls, agent.ToolOutcome{Type: kind, Call: fmt.Sprint(i)})
	}
	return t
}

// putGroup journals the samples of one prompt, in slices of 8 and each slice in an order.
func putGroup(t *testing.T, st store.Store, in SliceInput, group []ended, order func([]store.Record)) {
	t.Helper()
	for first := 0; first < len(group); first += SliceSamples {
		var records []store.Record
		for i, e := range group[first:min(first+SliceSamples, len(group))] {
			x := e.trajectory(in.Ordinal, first+i)
			body, err := x.Encode()
			must(t, err)
			records = append(records, store.Record{Key: finalKey(first + i), Value: body})
		}
		in.Slice = first / SliceSamples
		order(records)
		journal(t, st, sliceJournal(in), records, 3)
	}
}

func asMade([]store.Record)          {}
func backwards(r []store.Record)     { slices.Reverse(r) }
func roundOf(ordinal int) SliceInput { return rolloutOf("one", 0, ordinal) }

func rolloutOf(stage string, iteration, ordinal int) SliceInput {
	return SliceInput{Run: benchRun, Stage: stage, Purpose: PurposeRollout, Round: store.IterationGroup(iteration), Ordinal: ordinal}
}

// selected journals the groups of round 0, from ordinal 30 on, and chooses its batch.
func selected(t *testing.T, st store.Store, groups ...[]ended) (SelectResult, batch) {
	t.Helper()
	for i, g := range groups {
		putGroup(t, st, roundOf(30+i), g, asMade)
	}
	b := process(t, st)
	got := call[SelectResult](b, b.sel.SelectBatch, selectOf(len(groups)))
	return got, batchAt(t, st, got)
}

func selectOf(prompts int) SelectInput {
	return SelectInput{Run: benchRun, Stage: "one", Step: 1, FirstOrdinal: 30, Prompts: prompts, Weights: toy.first}
}

func batchAt(t *testing.T, st store.Store, r SelectResult) batch {
	t.Helper()
	body := get(t, st, r.Batch.Key)
	if digest(body) != r.Batch.Digest {
		t.Fatalf("%s has digest %s, the result says %s", r.Batch.Key, digest(body), r.Batch.Digest)
	}
	b, err := decodeBatch(body)
	must(t, err)
	return b
}

// chosenOf counts the survivors of the i-th group, by kind. Their second id is their sample.
func chosenOf(b batch, group []ended, i int) (rights, wrongs int) {
	for _, s := range b.Batch.Sequences {
		if s.IDs[2] != int32(30+i) {
			continue
		}
		if group[s.IDs[3]].outcome == agent.Correct {
			rights++
		} else {
			wrongs++
		}
	}
	return rights, wrongs
}

func TestGroupsOfOneRewardAreRejected(t *testing.T) {
	st, _ := toyRun(t)
	mixed := append(times(10, right()), times(6, wrong())...)
	got, b := selected(t, st, times(16, right()), mixed, times(16, wrong()))
	if got.Groups != 3 || got.AllCorrect != 1 || got.AllWrong != 1 || got.Sequences != 8 {
		t.Fatalf("%+v, want one group of three and its 8 survivors", got)
	}
	if got.Reward != 26./48 {
		t.Fatalf("reward %v, want the mean over all 48 samples, the rejected ones too", got.Reward)
	}
	// 6 of 16 are wrong: floor(6/2) of them stay, and 8-3 of the right ones.
	if r, w := chosenOf(b, mixed, 1); r != 5 || w != 3 {
		t.Fatalf("%d right and %d wrong survivors, want 5 and 3", r, w)
	}
}

func TestARoundWithoutAMixedGroupIsAnEmptyBatch(t *testing.T) {
	st, _ := toyRun(t)
	got, b := selected(t, st, times(16, right()), times(16, wrong()))
	if got.Sequences != 0 || len(b.Batch.Sequences) != 0 || got.AllCorrect != 1 || got.AllWrong != 1 || got.Batch.Key == "" {
		t.Fatalf("%+v, want a recorded batch of nothing", got)
	}
}

func TestTrap13AnUnknownVerdictDropsItsWholeGroup(t *testing.T) {
	st, _ := toyRun(t)
	unknown := append(append(times(7, right()), times(8, wrong())...), ended{outcome: agent.Unknown, answer: "x"})
	mixed := append(times(8, wrong()), times(8, right())...)
	got, b := selected(t, st, unknown, mixed)
	if r, w := chosenOf(b, unknown, 0); r+w != 0 || b.UnknownGroups != 1 || got.AllWrong+got.AllCorrect != 0 {
		t.Fatalf("%d sequences of a group with an unknown verdict, %d such groups; want none of 1", r+w, b.UnknownGroups)
	}
	if r, w := chosenOf(b, mixed, 1); r != 4 || w != 4 {
		t.Fatalf("%d right and %d wrong survivors of the other group, want 4 and 4", r, w)
	}
}

func TestSurvivorsOfOneRewardAreDropped(t *testing.T) {
	st, _ := toyRun(t)
	lone := append(times(15, right()), wrong()) // floor(1/2) wrong ones stay: none
	got, b := selected(t, st, lone)
	if got.Sequences != 0 || b.Degenerate != 1 {
		t.Fatalf("%d sequences, %d degenerate groups; want 0 and 1", got.Sequences, b.Degenerate)
	}
}

func TestAdvantagesAreThoseOfTheSurvivors(t *testing.T) {
	st, _ := toyRun(t)
	mixed := append(times(10, right()), times(6, wrong())...)
	_, b := selected(t, st, mixed)
	mean, n := 5./8, 8. // 5 of the 8 survivors are right
	std := math.Sqrt((5*(1-mean)*(1-mean) + 3*mean*mean) / (n - 1))
	for _, s := range b.Batch.Sequences {
		want := -mean / (std + 1e-6)
		if mixed[s.IDs[3]].outcome == agent.Correct {
			want = (1 - mean) / (std + 1e-6)
		}
		if math.Abs(float64(s.Advantage)-want) > 1e-6 {
			t.Fatalf("advantage %v of sample %d, want %v", s.Advantage, s.IDs[3], want)
		}
	}
}

func TestSpotlessCorrectSamplesSurviveFirst(t *testing.T) {
	st, _ := toyRun(t)
	spotty, spotless := right(), right()
	spotty.calls, spotty.errors, spotless.calls = 4, 3, 4
	mixed := append(append(times(5, spotty), times(5, spotless)...), times(6, wrong())...)
	_, b := selected(t, st, mixed)
	for _, s := range b.Batch.Sequences {
		if s.IDs[3] < 5 {
			t.Fatalf("sample %d, with errors in 3 of 4 calls, survives before one of the 5 without", s.IDs[3])
		}
	}
}

func TestTrap26TheReleasedPenaltyReadsTheWordsOfToolResponses(t *testing.T) {
	st, _ := toyRun(t)
	rec := toyRecipe(t)
	rec.RL.Penalty = "code"
	retold(t, st, rec)
	tok, err := process(t, st).sel.Runs.Tokenizer(t.Context(), benchRun)
	must(t, err)
	group := make([]agent.Trajectory, 16)
	for i := range group {
		e := wrong()
		if i < 10 { // all right, with a failed call; five failed by a time-out, whose response has no word of an error
			e = right()
			e.calls, e.errors = 1, 1
		}
		x := e.trajectory(30, i)
		said := "Tool call failure\nreason: \nstderr: NameError at line 1"
		if i >= 5 {
			said = "Tool call failure\nreason: worker_timeout"
		}
		text := tok.EncodeWithSpecials("a<|im_end|>\n<|im_start|>user\n<tool_response>\n" + said + "\n</tool_response><|im_end|>\n<|im_start|>assistant\n<reason><answer>7</answer><|im_end|>")
		x.IDs, x.Mask = append(x.IDs[:2:2], text...), []uint8{0, 0}
		for range text {
			x.Mask = append(x.Mask, 1)
		}
		x.LogProbs, x.Entropy = make([]float32, len(x.IDs)), make([]float32, len(x.IDs))
		x.Turns[0].End = len(x.IDs)
		group[i] = x
	}
	var records []store.Record
	for i := range group {
		body, err := group[i].Encode()
		must(t, err)
		records = append(records, store.Record{Key: finalKey(i), Value: body})
	}
	for slice := range 2 {
		in := roundOf(30)
		in.Slice = slice
		journal(t, st, sliceJournal(in), records[slice*SliceSamples:(slice+1)*SliceSamples], 3)
	}
	b := process(t, st)
	got := batchAt(t, st, call[SelectResult](b, b.sel.SelectBatch, selectOf(1)))
	rights := 0
	for _, s := range got.Batch.Sequences {
		if s.Ordinal < 5 {
			t.Errorf("sample %d, whose response names an error, survives before one of the 5 that do not", s.Ordinal)
		}
		if s.Ordinal < 10 {
			rights++
		}
	}
	if rights != 5 || len(got.Batch.Sequences) != 8 {
		t.Errorf("%d right ones of %d survive, want 5 of 8", rights, len(got.Batch.Sequences))
	}
	if _, err := Choose(rec, selectOf(1), [][]agent.Trajectory{group}); err == nil || !strings.Contains(err.Error(), "rl.penalty") {
		t.Errorf("groups in memory: error %v, want one that names the key", err)
	}
}

func TestSequencesKeepTheirTokensUnderOrdinalsOfTheirOwn(t *testing.T) {
	st, _ := toyRun(t)
	mixed := append(times(8, right()), times(8, wrong())...)
	_, b := selected(t, st, mixed, mixed, mixed)
	seen := map[int]bool{}
	for _, s := range b.Batch.Sequences {
		group, sample := int(s.IDs[2])-30, int(s.IDs[3])
		if want := group*16 + sample; s.Ordinal != want || seen[s.Ordinal] {
			t.Fatalf("sample %d of group %d has ordinal %d, want %d, once", sample, group, s.Ordinal, want)
		}
		seen[s.Ordinal] = true
		x := mixed[sample].trajectory(30+group, sample)
		if !slices.Equal(s.IDs, x.IDs) || !slices.Equal(s.Mask, x.Mask) || !slices.Equal(s.LogProbs, x.LogProbs) {
			t.Fatalf("sequence %+v is not its trajectory %+v", s, x)
		}
	}
	if len(seen) != 24 {
		t.Fatalf("%d sequences, want 8 of each group", len(seen))
	}
}

func TestABatchIsAFunctionOfTheJournal(t *testing.T) {
	groups := [][]ended{
		append(times(10, right()), times(6, wrong())...), append(times(3, right()), times(13, wrong())...), times(16, wrong()),
	}
	first, _ := toyRun(t)
	got, _ := selected(t, first, groups...)
	second, _ := toyRun(t)
	for i := range slices.Backward(groups) {
		putGroup(t, second, roundOf(30+i), groups[i], backwards)
	}
	b := process(t, second)
	if other := call[SelectResult](b, b.sel.SelectBatch, selectOf(3)); !reflect.DeepEqual(other, got) {
		t.Fatalf("the same samples in another order give %+v, want %+v", other, got)
	}
	for key := range contents(t, second) { // the batch is recorded: nothing is read again
		if kindOf(key[len(store.RunPrefix(benchRun)):]) == "journal" {
			must(t, second.Delete(t.Context(), key))
		}
	}
	b = process(t, second)
	if again := call[SelectResult](b, b.sel.SelectBatch, selectOf(3)); !reflect.DeepEqual(again, got) {
		t.Fatalf("asked again: %+v, want %+v", again, got)
	}
	late := selectOf(3)
	late.Step = 2
	refused(t, b, b.sel.SelectBatch, late, "is recorded as step 1, asked for as step 2")
}

func TestTheFirstBatchOfARoundStands(t *testing.T) {
	st, _ := toyRun(t)
	mixed := append(times(8, right()), times(8, wrong())...)
	held := batch{Stage: "one", Step: 1, Groups: 1, Batch: toyBatch(0)}
	putGroup(t, st, roundOf(30), mixed, asMade)
	b := process(t, &overtaken{Store: st, then: func() { putBatch(t, st, held) }})
	got := call[SelectResult](b, b.sel.SelectBatch, selectOf(1))
	if got.Sequences != len(held.Batch.Sequences) {
		t.Fatalf("%+v, want the batch of whoever was first", got)
	}
}

func TestTrap25AMissingSampleIsNoBatch(t *testing.T) {
	st, _ := toyRun(t)
	putGroup(t, st, roundOf(30), times(15, right()), asMade)
	b := process(t, st)
	refused(t, b, b.sel.SelectBatch, selectOf(1), "sample 15 of prompt 30 is not final")
}

func TestFiguresCountEverySampleOfTheRound(t *testing.T) {
	st, p := toyRun(t)
	busy := ended{outcome: agent.Wrong, calls: 3, errors: 1, truncated: true}
	mixed := append(append(times(8, right()), times(4, wrong())...), times(4, busy)...)
	got, b := selected(t, st, mixed, times(16, busy))
	if got.ToolErrorShare != 1./3 || got.TruncatedShare != 20./32 || got.Reward != 8./32 {
		t.Fatalf("%+v, want a third of the calls wrong, 20 of 32 samples cut short, 8 correct", got)
	}
	if b.Calls != 60 || b.CallErrors != 20 || b.Tokens != 64 || b.Version != p.first.Version {
		t.Fatalf("%+v, want 60 calls, 20 errors, 64 tokens of %s", b, p.first.Version)
	}
	tr := process(t, st)
	m := trainOn(tr, TrainInput{Run: benchRun, Stage: "one", Step: 1, Batch: got.Batch}).Metrics
	if m.CallsPerSample != 60./32 || m.ToolErrorShare != 1./3 || m.ResponseTokens != 2 || m.Groups != 2 || m.AllWrong != 1 || m.Reward != 0.25 {
		t.Fatalf("the step's metrics are %+v, want the round's figures", m)
	}
}

func TestTrap26ARewardStaysWithItsTrajectoryInABatchBeyond64(t *testing.T) {
	var groups [][]ended
	for i := range 6 {
		g := make([]ended, 16)
		for s := range g {
			g[s] = wrong()
			if (s*7+i)%5 < 2 {
				g[s] = right()
			}
		}
		groups = append(groups, g)
	}
	c := choosing(t, "algorithm: grpo")
	for i, g := range groups {
		var all []agent.Trajectory
		for s, e := range g {
			x := e.trajectory(30+i, s)
			for k := range (3*i + 5*s) % 11 { // unequal lengths
				x.IDs, x.Mask = append(x.IDs, int32(k)), append(x.Mask, 1)
				x.LogProbs, x.Entropy = append(x.LogProbs, -1), append(x.Entropy, 0)
			}
			x.Turns[0].End = len(x.IDs)
			all = append(all, x)
		}
		c.read(30+i, all)
	}
	sequences := chosen(t, c)[0].Batch.Sequences
	if len(sequences) != 96 {
		t.Fatalf("%d sequences, want 96", len(sequences))
	}
	for _, s := range sequences {
		group, sample := int(s.IDs[2])-30, int(s.IDs[3]) // the ids say whose they are
		if correct := groups[group][sample].outcome == agent.Correct; (s.Advantage > 0) != correct || s.Advantage == 0 {
			t.Errorf("sample %d of group %d is correct: %v, its advantage is %v", sample, group, correct, s.Advantage)
		}
		if want := 4 + (3*group+5*sample)%11; len(s.IDs) != want || s.LogProbs[3] != -float32(sample+1) {
			t.Errorf("sample %d of group %d has %d ids and log-prob %v, want %d and %v", sample, group, len(s.IDs), s.LogProbs[3], want, -float32(sample+1))
		}
	}
}
