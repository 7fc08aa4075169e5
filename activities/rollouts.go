package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/tokenizer"
	"go.temporal.io/sdk/activity"
)

// Rollouts samples trajectories.
//
// Every finished turn goes to the slice's journal. An attempt begins by reading it: finished trajectories are counted and
// never sampled again, unfinished ones go on after their last complete turn, to the same tokens.
type Rollouts struct {
	Runs    *Runs
	Store   store.Store
	Engines Samplers
	Pools   Sandboxes
	Faults  store.Faults

	LoseFrom int // attempt at a slice from which a sample may be given up for lost; default 10
}

// Samplers give the engine of a policy. *Engines is one.
type Samplers interface {
	// Use returns the engine of a policy. The caller gives it back with done.
	Use(ctx context.Context, run string, w Weights) (eng agent.Engine, done func(), err error)
}

// Sandboxes give what runs tool calls isolated as a recipe asks. *Pools is one.
type Sandboxes interface {
	Get(ctx context.Context, s recipe.Sandbox) (agent.Runner, error)
}

// Slice makes in.Samples trajectories of one prompt final in the journal, and counts them.
func (r *Rollouts) Slice(ctx context.Context, in SliceInput) (SliceResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := r.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return SliceResult{}, err
	}
	journal, records, err := store.OpenJournal(ctx, r.Store, sliceJournal(in))
	if err != nil {
		return SliceResult{}, err
	}
	logs, err := readLogs(records)
	if err != nil {
		return SliceResult{}, err
	}
	if todo := logs.unfinished(in); len(todo) > 0 {
		work := &slice{Rollouts: r, in: in, rec: rec, journal: journal, logs: logs, progress: progress, attempt: int(activity.GetInfo(ctx).Attempt)}
		if err := work.finish(ctx, todo); err != nil {
			_ = journal.Close(ctx) // the turns that it could not write are sampled again, to the same tokens
			return SliceResult{}, missing(err)
		}
	}
	if err := journal.Close(ctx); err != nil {
		return SliceResult{}, err
	}
	r.Faults.Point("before-complete", sliceJournal(in))
	return logs.count(in)
}

// sliceJournal is where a slice's turns and trajectories are recorded.
func sliceJournal(in SliceInput) string {
	return store.JournalPrefix(in.Run, in.Stage, journalKind(in.Purpose), in.Round, in.Ordinal, in.Slice)
}

func journalKind(purpose string) store.Kind {
	switch purpose {
	case PurposeEval:
		return store.Evals
	case PurposeFilter:
		return store.Filter
	}
	return store.Rollouts
}

// slice is one attempt at a slice.
type slice struct {
	*Rollouts
	in       SliceInput
	rec      Recipe
	journal  *store.Journal
	logs     *sampleLogs
	progress *pulse
	agent    *agent.Agent
	attempt  int // of the activity, from 1
}

// finish runs the samples that have no final record, all at once.
func (s *slice) finish(ctx context.Context, todo []int) error {
	tok, err := s.Runs.Tokenizer(ctx, s.in.Run)
	if err != nil {
		return err
	}
	p, err := s.problem(ctx)
	if err != nil {
		return err
	}
	eng, done, err := s.Engines.Use(ctx, s.in.Run, s.in.Weights)
	if err != nil {
		return err
	}
	defer done()
	pool, err := s.Pools.Get(ctx, s.rec.Sandbox)
	if err != nil {
		return err
	}
	config := AgentConfig(s.rec)
	if config.Stop, err = s.Runs.Ends(ctx, s.in.Run); err != nil {
		return err
	}
	if s.agent, err = agent.New(eng, pool, tok, config); err != nil {
		return InputError(err)
	}
	if err := s.audit(ctx, todo); err != nil {
		return err
	}
	question := p.Problem
	if s.in.Purpose == PurposeHint {
		question = hinted(s.rec.Stages[s.in.StageIndex], p)
	}
	prompt := Template(s.rec).PromptIDs(tok, question)
	if n, most := len(prompt), s.rec.Agent.MaxPromptTokens; n > most {
		return InputError(fmt.Errorf("the prompt of problem %s has %d tokens, agent.max_prompt_tokens is %d: raise it or leave the problem out", p.ID, n, most))
	}
	tasks, err := s.tasks(p, prompt, todo)
	if err != nil {
		return err
	}
	unfinished, err := s.run(ctx, tasks, sampleRuns)
	if err != nil {
		return err
	}
	return s.giveUp(ctx, tasks, unfinished)
}

func (s *slice) append(key string, encode func() ([]byte, error)) error {
	body, err := encode()
	if err != nil {
		return err
	}
	return s.journal.Append(store.Record{Key: key, Value: body})
}

func (s *slice) task(p problem.Problem, prompt []int32, sample int) agent.Task {
	return agent.Task{
		Problem: p.ID, Prompt: prompt, Seed: s.rec.Seed, Address: s.address(sample),
		MaxTokens: s.in.Tokens, MaxTurns: s.in.Turns, Temperature: float32(s.in.Temperature),
		Version: s.in.Weights.Version, Group: s.group(), Judge: s.judge(s.rec, p.Answer), Patience: time.Duration(s.attempt) * samplePatience,
	}
}

func (s *slice) group() string {
	return fmt.Sprintf("%s/%s/%s/%s/%d", s.in.Run, s.in.Stage, s.in.Purpose, s.in.Round, s.in.Ordinal)
}

func (s *slice) address(sample int) philox.Address {
	purpose := map[string]philox.Purpose{PurposeRollout: philox.Rollout, PurposeEval: philox.Eval, PurposeFilter: philox.Filter, PurposeHint: philox.Hint}[s.in.Purpose]
	return philox.Address{Purpose: purpose, Stage: s.in.StageIndex, Iteration: s.in.Iteration, Ordinal: s.in.Ordinal, Sample: sample}
}

// problem is the slice's problem: evaluated sets and those of hints in their own order, training sets in the stage's shuffled one.
func (s *slice) problem(ctx context.Context) (problem.Problem, error) {
	set, err := s.Runs.Problems(ctx, s.in.Problems)
	if err != nil {
		return problem.Problem{}, err
	}
	i := s.in.Ordinal
	if s.in.Purpose != PurposeEval && s.in.Purpose != PurposeHint {
		order := promptOrder{key: philox.NewKey(s.rec.Seed), stage: s.in.StageIndex, n: len(set)}
		i = order.index(i)
	}
	if i >= len(set) {
		return problem.Problem{}, fmt.Errorf("problem %d asked for, %s holds %d", i, s.in.Problems.Key, len(set))
	}
	return set[i], nil
}

// audit records which trajectories this attempt is about to sample. It reads the journal again, not what the attempt decided
// from, and refuses to sample what became final meanwhile: FinalExisted is true only if that guard is broken. Who wants
// evidence beyond the run's own word compares when audit segments and final records were written, as restar-chaos does.
func (s *slice) audit(ctx context.Context, todo []int) error {
	records, err := store.ReadJournal(ctx, s.Store, sliceJournal(s.in))
	if err != nil {
		return err
	}
	now, err := readLogs(records)
	if err != nil {
		return err
	}
	var events []store.Event
	for _, sample := range todo {
		if now.isFinal(sample) { // while this attempt waited for its engine, its heir finished the slice
			return fmt.Errorf("sample %d of %s: %w", sample, s.group(), store.ErrSuperseded)
		}
		events = append(events, store.Event{Sampled: &store.Sampled{
			Run: s.in.Run, Stage: s.in.Stage, Purpose: s.in.Purpose, Iteration: s.in.Iteration, Name: s.in.Round,
			Ordinal: s.in.Ordinal, Slice: s.in.Slice, Sample: sample, FinalExisted: now.isFinal(sample),
			Attempt: s.attempt,
		}})
	}
	return store.AppendAudit(ctx, s.Store, s.in.Run, events...)
}

// AgentConfig is how an agent plays by a recipe's tool protocol; which ids end a turn is the model's to say.
func AgentConfig(rec Recipe) agent.Config {
	return agent.Config{
		Tools: []agent.Tool{agent.ToolNamed(rec.Agent.Tool)}, CallsPerTurn: rec.Agent.CallsPerTurn, Retry: agent.DefaultRetry(),
		Format: agent.ResponseFormat{StreamChars: rec.Agent.StreamChars, ResponseChars: rec.Agent.ResponseChars, ExecutionTime: rec.Agent.ExecutionTime},
	}
}

// promptTokens is how long the prompt of a question is under a recipe.
func promptTokens(rec Recipe, tok *tokenizer.Tokenizer, question string) int {
	return len(Template(rec).PromptIDs(tok, question))
}
