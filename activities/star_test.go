package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
	"github.com/restar-rl/restar/workers/train"
)

const (
	starStage = `stages:
  - {name: star, samples: 8, response_tokens: 400, turns: 3,
     star: {iterations: 3, first_steps: 3, growth: 1.7, batch: 4, rationalize: true}}
`
	starSamples = 8
	starBatch   = 4
)

func starRecipe(t *testing.T) Recipe {
	t.Helper()
	head, rest, ok := strings.Cut(toyText, "stages:")
	_, tail, ok2 := strings.Cut(rest, "eval:")
	if !ok || !ok2 {
		t.Fatal("the toy recipe has other parts")
	}
	text := strings.Replace(head, "rl: {", "rl: {algorithm: star, correct_per_problem: 2, warmup_steps: 2, ", 1) + starStage + "eval:" + tail
	rec, err := recipe.Parse([]byte(text))
	must(t, err)
	rec.NumericsID = toyRecipe(t).NumericsID
	return rec
}

// star is a run whose only stage is one of STaR, right before it begins.
type star struct {
	t    *testing.T
	rec  Recipe
	base Weights
	set  Dataset
	all  []problem.Problem
}

// starRun has five problems: two that the writing policy solves in half of its samples, one in a quarter, one that it solves with a
// hint only, and one that it never solves.
func starRun(t *testing.T) (*store.Memory, star) {
	t.Helper()
	st, p := toyRun(t)
	s := star{t: t, rec: starRecipe(t), base: p.sft}
	retold(t, st, s.rec) // the base was trained by the part that both recipes share
	for i, answer := range []string{"7", "7", "8", "9", "10"} {
		s.all = append(s.all, problem.Problem{ID: fmt.Sprintf("star-%d", i), Problem: fmt.Sprintf("Which number, asked %d times?", i), Answer: answer})
	}
	var err error
	s.set, err = putProblems(t.Context(), st, "star", s.all)
	must(t, err)
	return st, s
}

// hintReader is the writing policy, which answers 9 where a hint says so.
type hintReader struct{ *writer }

func (h *hintReader) Use(context.Context, string, Weights) (agent.Engine, func(), error) {
	return h, func() {}, nil
}

func (h *hintReader) Generate(ctx context.Context, r engine.Request) (engine.Generation, error) {
	out, err := h.writer.Generate(ctx, r)
	if err == nil && strings.Contains(h.tok.Decode(r.IDs), " The answer is 9.") {
		out.IDs = h.tok.EncodeWithSpecials(fmt.Sprintf("</reason>\nTry %d.\n<answer>\\boxed{9}</answer>", r.Address.Sample%3) + tokenizer.TurnEnd)
		out.LogProbs, out.Entropy = make([]float32, len(out.IDs)), make([]float32, len(out.IDs))
	}
	return out, err
}

func (s star) process(st store.Store, policy Weights) *bench {
	b := process(s.t, st)
	w := &hintReader{writing(s.t, b, policy.Version)}
	b.ro.Engines = w
	return b
}

func (s star) name(iteration int) string { return s.rec.Stages[0].Iteration(iteration) }

// round is the input of an iteration that starts after step steps.
func (s star) round(iteration int, step int64, policy Weights) SolutionsInput {
	first, prompts := STaRRound(s.rec.Stages[0], iteration, s.set.Problems)
	steps, err := STaRSteps(s.rec.Stages[0], iteration)
	must(s.t, err)
	return SolutionsInput{Problems: s.set, Steps: steps, SelectInput: SelectInput{
		Run: benchRun, Stage: s.name(iteration), Iteration: iteration, Step: step + 1, FirstOrdinal: first, Prompts: prompts, Weights: policy,
	}}
}

func (s star) slices(in SolutionsInput, purpose, round string, set Dataset, first, prompts int) []SliceInput {
	var out []SliceInput
	for i := range prompts {
		out = append(out, SliceInput{
			Run: benchRun, Stage: in.Stage, Purpose: purpose, Round: round, Iteration: in.Iteration, Ordinal: first + i, Samples: starSamples,
			Problems: set, Weights: in.Weights, Tokens: 400, Turns: 3, Temperature: 1,
		})
	}
	return out
}

// script is an iteration in the order of its workflow, each part with what it needs to know of the parts before.
func (s star) script(in SolutionsInput, unsolved Dataset, solutions Ref) []func(*bench) error {
	var out []func(*bench) error
	add := func(f func(*bench) error) { out = append(out, f) }
	samples := func(all []SliceInput) {
		for _, slice := range all {
			add(func(b *bench) error { _, err := try[SliceResult](b, b.ro.Slice, slice); return err })
		}
	}
	samples(s.slices(in, PurposeRollout, store.IterationGroup(in.Iteration), s.set, in.FirstOrdinal, in.Prompts))
	add(func(b *bench) error { _, err := try[UnsolvedResult](b, b.sel.Unsolved, in); return err })
	samples(s.slices(in, PurposeHint, HintRound(in.Iteration), unsolved, 0, unsolved.Problems))
	hinted := in
	hinted.Hinted = unsolved
	add(func(b *bench) error { _, err := try[SolutionsResult](b, b.sel.KeepSolutions, hinted); return err })
	add(func(b *bench) error {
		_, err := try[Weights](b, b.tr.BeginStage, beginOf(in.Stage, 0, s.base, in.Step-1))
		return err
	})
	for u := range in.Steps {
		x := TrainInput{Run: benchRun, Stage: in.Stage, Iteration: in.Iteration, Update: u, Step: in.Step + int64(u), Batch: solutions}
		add(func(b *bench) error { _, err := try[TrainResult](b, b.tr.TrainStep, x); return err })
		if x.Step%2 == 0 || u == in.Steps-1 {
			save := CheckpointInput{Run: benchRun, Stage: in.Stage, Step: x.Step}
			add(func(b *bench) error { _, err := try[any](b, b.tr.Checkpoint, save); return err })
		}
	}
	return out
}

// iterate runs an iteration undisturbed and returns its policy.
func (s star) iterate(st store.Store, in SolutionsInput) (SolutionsResult, Weights) {
	s.t.Helper()
	b := s.process(st, in.Weights)
	for _, f := range s.script(in, Dataset{}, Ref{})[:in.Prompts+1] {
		must(s.t, f(b))
	}
	unsolved := call[UnsolvedResult](b, b.sel.Unsolved, in)
	for _, slice := range s.slices(in, PurposeHint, HintRound(in.Iteration), unsolved.Problems, 0, unsolved.Problems.Problems) {
		call[SliceResult](b, b.ro.Slice, slice)
	}
	hinted := in
	hinted.Hinted = unsolved.Problems
	kept := call[SolutionsResult](b, b.sel.KeepSolutions, hinted)
	for _, f := range s.script(in, unsolved.Problems, kept.Batch)[in.Prompts+1:] {
		must(s.t, f(b))
	}
	var m StepMetrics
	must(s.t, json.Unmarshal(get(s.t, st, store.MetricsKey(benchRun, in.Stage, in.Iteration, in.Steps-1)), &m))
	return kept, Weights{Stage: in.Stage, Version: versionOf(in.Stage, in.Step+int64(in.Steps)-1), Digest: m.WeightsDigest}
}

// twice runs two iterations undisturbed, once for all tests, and gives each its own copy of the store.
func twice(t *testing.T) (*store.Memory, star, [2]SolutionsInput, [2]SolutionsResult, [2]Weights) {
	t.Helper()
	st, s := starRun(t)
	ranOnce.Do(func() {
		ran.in[0] = s.round(1, 0, s.base)
		ran.kept[0], ran.policy[0] = s.iterate(st, ran.in[0])
		ran.in[1] = s.round(2, int64(ran.in[0].Steps), ran.policy[0])
		ran.kept[1], ran.policy[1] = s.iterate(st, ran.in[1])
		ran.objects = contents(t, st)
	})
	for key, body := range ran.objects {
		put(t, st, key, body)
	}
	return st, s, ran.in, ran.kept, ran.policy
}

var (
	ranOnce sync.Once
	ran     struct {
		objects map[string][]byte
		in      [2]SolutionsInput
		kept    [2]SolutionsResult
		policy  [2]Weights
	}
)

func TestSTaRKeepsWhatIsRightAndTakesHintsAway(t *testing.T) {
	st, s, in, kept, _ := twice(t)
	want := SolutionsResult{Batch: kept[0].Batch, Steps: 3, Kept: 8, Groups: 5, Solved: 3, Hinted: 2, Rationalized: 1, Reward: 10. / 40, Timings: kept[0].Timings}
	if kept[0] != want {
		t.Fatalf("kept %+v, want %+v", kept[0], want)
	}
	tok, err := (&Runs{Store: st}).Tokenizer(t.Context(), benchRun)
	must(t, err)
	b, err := decodeBatch(get(t, st, kept[0].Batch.Key))
	must(t, err)
	nines := 0
	for _, q := range b.Batch.Sequences {
		text := tok.Decode(q.IDs)
		if strings.Contains(text, "The answer is") {
			t.Fatalf("a hint is trained on: %s", text)
		}
		if !strings.Contains(text, `\boxed{9}`) {
			continue
		}
		nines++
		plain := Template(s.rec).PromptIDs(tok, s.all[3].Problem)
		response := tok.EncodeWithSpecials(fmt.Sprintf("</reason>\nTry %d.\n<answer>\\boxed{9}</answer>", nines-1) + tokenizer.TurnEnd)
		mask := append(make([]uint8, len(plain)), slices.Repeat([]uint8{1}, len(response))...)
		if !slices.Equal(q.IDs, slices.Concat(plain, response)) || !slices.Equal(q.Mask, mask) {
			t.Fatalf("a rationalized solution is %q with mask %v, want the plain prompt's ids and the response as sampled", text, q.Mask)
		}
	}
	if nines != 2 || b.Step != 1 || in[1].Step != 4 {
		t.Fatalf("%d rationalized solutions from step %d on, want 2 from step 1", nines, b.Step)
	}
}

// solutionsByHand are the distinct correct samples of an iteration's groups, at most two of a problem, in the groups' order.
func (s star) solutionsByHand(st store.Store, in SolutionsInput) (out []train.Sequence) {
	tok, err := (&Runs{Store: st}).Tokenizer(s.t.Context(), benchRun)
	must(s.t, err)
	order := philox.NewKey(s.rec.Seed).Perm(philox.Address{Purpose: philox.Shuffle, Stage: 0, Iteration: in.FirstOrdinal / 5}, 5)
	var again []problem.Problem
	take := func(slice SliceInput, p problem.Problem) {
		all, err := readGroup(s.t.Context(), st, slice, starSamples)
		must(s.t, err)
		prompt := Template(s.rec).PromptIDs(tok, p.Problem)
		var taken []string
		for _, x := range all {
			text := fmt.Sprint(x.IDs[x.PromptLen:])
			if x.Verdict.Outcome != agent.Correct || slices.Contains(taken, text) || len(taken) == 2 {
				continue
			}
			taken = append(taken, text)
			q := train.Sequence{Advantage: 1, IDs: slices.Concat(prompt, x.IDs[x.PromptLen:])}
			q.Mask = append(make([]uint8, len(prompt)), x.Mask[x.PromptLen:]...)
			q.LogProbs = append(make([]float32, len(prompt)), x.LogProbs[x.PromptLen:]...)
			out = append(out, q)
		}
		if len(taken) == 0 && slice.Purpose == PurposeRollout {
			again = append(again, p)
		}
	}
	for _, slice := range s.slices(in, PurposeRollout, store.IterationGroup(in.Iteration), s.set, in.FirstOrdinal, in.Prompts) {
		take(slice, s.all[order[slice.Ordinal%5]])
	}
	for i, slice := range s.slices(in, PurposeHint, HintRound(in.Iteration), Dataset{}, 0, len(again)) {
		take(slice, again[i])
	}
	return out
}

func TestAnIterationOfSTaREqualsAPlainLoopFromTheBase(t *testing.T) {
	st, s, in, _, policy := twice(t)
	for i := range in {
		all := s.solutionsByHand(st, in[i])
		b := s.process(st, s.base)
		m, err := (&Policies{Runs: b.tr.Runs, Store: st}).Load(t.Context(), benchRun, s.base)
		must(t, err)
		state := train.NewState(m) // no moments, no updates: a fresh optimizer
		state.AppliedStep = in[i].Step - 1
		taken := 0
		for u := range in[i].Steps {
			var next train.Batch
			for k := range starBatch {
				epoch := taken / len(all)
				perm := philox.NewKey(s.rec.Seed).Perm(philox.Address{Purpose: philox.Shuffle, Iteration: epoch, Ordinal: in[i].Iteration}, len(all))
				q := all[perm[taken%len(all)]]
				q.Ordinal = k
				next.Sequences = append(next.Sequences, q)
				taken++
			}
			_, err := train.Step(t.Context(), state, next, in[i].Step+int64(u), train.Objective{Kind: train.SFT, Norm: "token-mean"}, optimizer(s.rec, s.name(1)))
			must(t, err)
		}
		if got := state.WeightsDigest(); got != policy[i].Digest || got == s.base.Digest {
			t.Fatalf("iteration %d ends with weights %s, a plain loop from the base with %s", i+1, policy[i].Digest, got)
		}
	}
}

func TestALostTrainerReplaysAnIterationOfSTaRFromItsBase(t *testing.T) {
	want, s, in, kept, policy := twice(t)
	for lost := range in[1].Steps + 1 {
		st, _ := starRun(t)
		_, first := s.iterate(st, in[0])
		b := s.process(st, first)
		unsolved := s.unsolved(st, in[1])
		script := s.script(in[1], unsolved, kept[1].Batch)
		begin := len(script) - s.trainingParts(in[1])
		for i, f := range script {
			if i == begin+lost {
				b = s.process(st, first)
			}
			must(t, f(b))
		}
		wantSame(t, fmt.Sprintf("a trainer lost at part %d", lost), canonical(t, st), canonical(t, want))
		if c, _ := audited(t, st); c.StepsAppliedTwice != 0 {
			t.Fatalf("audit %+v", c)
		}
		if _, err := (&Policies{Runs: b.tr.Runs, Store: st}).Load(t.Context(), benchRun, policy[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// trainingParts is how many parts of a script come after the base was restored.
func (s star) trainingParts(in SolutionsInput) int {
	n := in.Steps
	for u := range in.Steps {
		if (in.Step+int64(u))%2 == 0 || u == in.Steps-1 {
			n++
		}
	}
	return n
}

// unsolved is what Unsolved gives for an iteration's round, once its slices are there.
func (s star) unsolved(st store.Store, in SolutionsInput) Dataset {
	s.t.Helper()
	b := s.process(st, in.Weights)
	for _, f := range s.script(in, Dataset{}, Ref{})[:in.Prompts] {
		must(s.t, f(b))
	}
	return call[UnsolvedResult](b, b.sel.Unsolved, in).Problems
}

func TestAFaultAtAnyWriteOfAnIterationOfSTaRChangesNothing(t *testing.T) {
	_, s, in, kept, _ := twice(t)
	st, _ := starRun(t)
	unsolved := s.unsolved(st, in[0])
	script := s.script(in[0], unsolved, kept[0].Batch)
	b := s.process(st, in[0].Weights)
	sampled := in[0].Prompts + 1 + unsolved.Problems
	for _, f := range script[:sampled] {
		must(t, f(b))
	}
	start := contents(t, st)
	for _, f := range script[sampled:] {
		must(t, f(b))
	}
	everyFault(t, start, canonical(t, st), script[sampled:])
}

func TestWithinAnIterationOfSTaRNoPolicyIsPublished(t *testing.T) {
	st, s, in, _, policy := twice(t)
	for i := range in {
		var versions []string
		entries, err := st.List(t.Context(), store.WeightsPrefix(benchRun, in[i].Stage))
		must(t, err)
		for _, e := range entries {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(e.Key, store.WeightsPrefix(benchRun, in[i].Stage)), "/manifest.json"); ok {
				versions = append(versions, name)
			}
		}
		if want := []string{versionOf(in[i].Stage, in[i].Step-1), policy[i].Version}; !slices.Equal(versions, want) {
			t.Errorf("iteration %d published %q, want the base and the result: %q", i+1, versions, want)
		}
	}
	m, err := store.WeightsManifest(t.Context(), st, benchRun, in[1].Stage, versionOf(in[1].Stage, in[1].Step-1))
	if err != nil || m.Meta["digest"] != s.base.Digest {
		t.Errorf("iteration 2 begins with weights %s (%v), want the base's %s", m.Meta["digest"], err, s.base.Digest)
	}
}

func TestSolutionsAreKeptOnce(t *testing.T) {
	st, s, in, kept, _ := twice(t)
	hinted := in[1]
	hinted.Hinted = s.unsolved(st, in[1])
	for key := range contents(t, st) { // what is recorded needs no journal
		if strings.Contains(key, "/rollouts/") {
			must(t, st.Delete(t.Context(), key))
		}
	}
	b := s.process(st, in[1].Weights)
	again := call[SolutionsResult](b, b.sel.KeepSolutions, hinted)
	if again.Timings = kept[1].Timings; again != kept[1] {
		t.Fatalf("asked again: %+v, want %+v", again, kept[1])
	}
	hinted.Step++
	refused(t, b, b.sel.KeepSolutions, hinted, "is recorded from step 4 on, asked for from step 5")
}

func TestAPolicyThatSolvesNothingGivesNoSteps(t *testing.T) {
	st, s := starRun(t)
	in := s.round(1, 0, s.base)
	for i := range in.Prompts {
		putGroup(t, st, rolloutOf(in.Stage, 1, i), times(starSamples, wrong()), asMade)
	}
	b := s.process(st, s.base)
	got := call[SolutionsResult](b, b.sel.KeepSolutions, in)
	if got.Kept != 0 || got.Steps != 0 || got.Groups != 5 || got.Solved != 0 {
		t.Fatalf("%+v, want nothing of five problems and no step", got)
	}
}

func TestAnUnknownVerdictIsNeitherSolvedNorHinted(t *testing.T) {
	st, s := starRun(t)
	in := s.round(1, 0, s.base)
	groups := [][]ended{times(8, wrong()), append(times(7, right()), ended{outcome: agent.Unknown}), times(8, right()), times(8, wrong()), append(times(7, wrong()), ended{outcome: agent.Unknown})}
	for i, g := range groups {
		putGroup(t, st, rolloutOf(in.Stage, 1, i), g, asMade)
	}
	b := s.process(st, s.base)
	order := philox.NewKey(s.rec.Seed).Perm(philox.Address{Purpose: philox.Shuffle}, 5)
	got := call[UnsolvedResult](b, b.sel.Unsolved, in)
	set, err := b.sel.Runs.Problems(t.Context(), got.Problems)
	must(t, err)
	if want := []problem.Problem{s.all[order[0]], s.all[order[3]]}; !reflect.DeepEqual(set, want) {
		t.Errorf("hinted are %+v, want %+v", set, want)
	}
	if kept := call[SolutionsResult](b, b.sel.KeepSolutions, in); kept.Unknown != 2 || kept.Solved != 1 || kept.Kept != 2 {
		t.Errorf("%+v, want one problem solved twice and two left out", kept)
	}
}

func TestAHintTooLongForThePromptIsCounted(t *testing.T) {
	st, s := starRun(t)
	s.rec.Stages[0].Star.Hint = strings.Repeat(" 1234567", 120) + " {answer}"
	must(t, st.Delete(t.Context(), store.RecipeKey(benchRun)))
	putRecipe(t, st, s.rec)
	in := s.round(1, 0, s.base)
	for i := range in.Prompts {
		putGroup(t, st, rolloutOf(in.Stage, 1, i), times(starSamples, wrong()), asMade)
	}
	b := s.process(st, s.base)
	if got := call[UnsolvedResult](b, b.sel.Unsolved, in); got.TooLong != 5 || got.Problems.Problems != 0 {
		t.Fatalf("%+v, want five prompts too long and none to sample", got)
	}
}

func TestTheReportTellsTheBestIterationAndThePlateau(t *testing.T) {
	st, s, in, kept, policy := twice(t)
	b := s.process(st, s.base)
	for i, score := range []float64{0.25, 0.5, 0.4} {
		it := Iteration{Iteration: i, Score: score, Weights: s.base}
		if i > 0 {
			it.Weights, it.Steps, it.Solutions, it.Solved, it.Problems = policy[i-1], in[i-1].Steps, kept[i-1].Kept, kept[i-1].Solved, 5
		}
		record := RecordInput{Run: benchRun, Stage: "star", Iteration: it}
		for range 2 {
			call[any](b, b.sco.RecordIteration, record)
		}
	}
	page, err := b.sco.Report(t.Context(), ReportInput{Run: benchRun})
	must(t, err)
	for _, want := range []string{
		"1 of 2, solve rate 50.0% (base 25.0%); ended at its plateau", "score 40.0%; 5 steps on 8 solutions of 3 of 5 problems",
		"star: solve rate by iteration", "Gradient norm",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

func TestCurvesOfSTaRHoldTheStepsAndPoliciesOfItsIterations(t *testing.T) {
	st, s, in, _, policy := twice(t)
	b := s.process(st, s.base)
	for _, e := range []struct {
		stage  string
		policy Weights
	}{{s.name(0), s.base}, {s.name(1), policy[0]}, {s.name(2), policy[1]}, {"star", policy[0]}} {
		putGroup(t, st, SliceInput{Run: benchRun, Stage: e.stage, Purpose: PurposeEval, Round: e.stage}, []ended{right(), wrong()}, asMade)
		call[EvalResult](b, b.sco.Score, ScoreInput{Run: benchRun, Stage: e.stage, Name: e.stage, Problems: s.set, Count: 1, Samples: 2, Weights: e.policy})
	}
	got, err := ReadCurves(t.Context(), st, benchRun, s.rec)
	must(t, err)
	var evals []string
	for _, e := range got.Evals {
		evals = append(evals, fmt.Sprintf("%s after %d", e.Name, e.Step))
	}
	if want := []string{"star.000 after 0", "star.001 after 3", "star.002 after 8", "star after 3"}; !slices.Equal(evals, want) {
		t.Errorf("evaluations %q, want %q", evals, want)
	}
	if len(got.Steps) != in[0].Steps+in[1].Steps || got.Steps[7].Step != 8 {
		t.Errorf("%d steps, want those of both iterations", len(got.Steps))
	}
}
