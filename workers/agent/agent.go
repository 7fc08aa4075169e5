package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// Agent runs trajectories. Its fields do not change after New; it may run any number of trajectories at once.
type Agent struct {
	engine    Engine
	runner    Runner
	tokenizer *tokenizer.Tokenizer
	config    Config
	tools     map[string]Tool
	stop      []int32
}

// Config is the tool protocol of a run.
type Config struct {
	Tools        []Tool
	CallsPerTurn int // calls run per turn; the others of the turn are answered as not run
	Format       ResponseFormat
	Limits       sandbox.Limits // of one call; zero fields take the pool's defaults
	Retry        RetryPolicy
	Stop         []int32 // ids that end a turn beside the markers <|im_end|> and <|endoftext|>: what the model's folder calls the end
}

// RetryPolicy says how failures of the sandbox are retried. Waits double from Base up to Cap.
type RetryPolicy struct {
	Attempts int           // at least 1
	Base     time.Duration // before the second attempt
	Cap      time.Duration
	Deadline time.Duration // of one attempt, queueing included: a pool that answers nothing for so long is broken
}

// DefaultRetry rides out the restart of a sandbox pool (seconds) and gives up within minutes, so that the durable retry above
// can move the work to another machine.
func DefaultRetry() RetryPolicy {
	return RetryPolicy{Attempts: 5, Base: 200 * time.Millisecond, Cap: 5 * time.Second, Deadline: 2 * time.Minute}
}

// New makes an agent. The tokenizer must know the turn markers.
func New(e Engine, r Runner, t *tokenizer.Tokenizer, c Config) (*Agent, error) {
	a := &Agent{engine: e, runner: r, tokenizer: t, config: c, tools: map[string]Tool{}}
	for _, tool := range c.Tools {
		if _, ok := a.tools[tool.Name]; ok || tool.Name == "" || tool.Program == nil {
			return nil, fmt.Errorf("tool %q cannot be used: each tool needs a name of its own and a program", tool.Name)
		}
		a.tools[tool.Name] = tool
		if _, ok := r.(Sessions); tool.Stateful && !ok {
			return nil, fmt.Errorf("tool %q is stateful and %T opens no sessions", tool.Name, r)
		}
	}
	if c.CallsPerTurn < 1 || c.CallsPerTurn >= 1<<purposeShift {
		return nil, fmt.Errorf("calls per turn is %d; it must lie in [1, %d)", c.CallsPerTurn, 1<<purposeShift)
	}
	if c.Format.StreamChars < 0 || c.Format.ResponseChars < 0 {
		return nil, fmt.Errorf("tool text limits %d and %d must not be negative; 0 means no limit", c.Format.StreamChars, c.Format.ResponseChars)
	}
	if c.Retry.Attempts < 1 || c.Retry.Deadline <= 0 || c.Retry.Base < 0 || c.Retry.Cap < c.Retry.Base {
		return nil, fmt.Errorf("retry policy %+v cannot be used: it needs an attempt, a deadline, and 0 <= base <= cap", c.Retry)
	}
	for _, name := range []string{tokenizer.TurnEnd, tokenizer.EndOfText} {
		id, ok := t.SpecialID(name)
		if !ok {
			return nil, fmt.Errorf("the tokenizer has no %s token; it cannot end a turn", name)
		}
		a.stop = append(a.stop, id)
	}
	for _, id := range c.Stop {
		if !slices.Contains(a.stop, id) {
			a.stop = append(a.stop, id)
		}
	}
	return a, nil
}

// ErrOverdue ends a Run whose patience is over. The trajectory is continued by another Run from its last recorded turn.
var ErrOverdue = errors.New("the wall time of one run is over")

// Run samples one trajectory to its end and judges it. After each completed turn it calls onTurn, if not nil, with the record
// that Rebuild takes; an error of onTurn ends the run. The result is finished and passes Check. Else the error says what went
// wrong: an *InfraError if the machinery failed, ErrOverdue if the task's patience is over, ctx's error if the caller gave up;
// and the result is as far as it came, for Task.Resume.
func (a *Agent) Run(ctx context.Context, task Task, onTurn func(TurnRecord) error) (Trajectory, error) {
	t, err := task.begin()
	if err != nil {
		return Trajectory{}, err
	}
	if task.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, task.Patience, ErrOverdue)
		defer cancel()
	}
	defer a.engine.Release(t.Key)
	book := a.notebook(task, &t)
	defer book.close()
	for t.Stop == "" {
		record, err := a.turn(ctx, task, &t, book)
		if err != nil {
			return t, err
		}
		if err := t.apply(record); err != nil {
			return Trajectory{}, err
		}
		if onTurn == nil {
			continue
		}
		if err := onTurn(record); err != nil {
			return Trajectory{}, fmt.Errorf("recording turn %d of trajectory %s: %w", record.Turn, t.Key, err)
		}
	}
	if t.Stop == Lost {
		return t, t.Check()
	}
	if err := a.judge(ctx, task, &t); err != nil {
		return t, err
	}
	return t, t.Check()
}

// turn samples one turn and answers its calls.
func (a *Agent) turn(ctx context.Context, task Task, t *Trajectory, book *notebook) (TurnRecord, error) {
	record := TurnRecord{Key: t.Key, Turn: len(t.Turns)}
	begin := time.Now()
	gen, err := a.generate(ctx, task, t)
	if err != nil {
		return record, err
	}
	record.Timings.Generate = time.Since(begin)
	record.IDs, record.LogProbs, record.Entropy = gen.IDs, gen.LogProbs, gen.Entropy
	record.Finish, record.Version = gen.Finish, gen.Version

	used := t.ResponseLen() + len(gen.IDs)
	calls, stop := a.next(task, record, used)
	if record.Stop = stop; stop != "" {
		return record, nil
	}
	if record.Calls, err = a.answer(ctx, task, record.Turn, calls, book, &record.Timings); err != nil {
		return record, err
	}
	texts := make([]string, len(record.Calls))
	for i, call := range record.Calls {
		texts[i] = call.Text
	}
	block := tokenizer.ToolBlockIDs(a.tokenizer, texts)
	if used+len(block) >= task.MaxTokens {
		record.Stop = ToolOverflow
		return record, nil
	}
	record.ToolIDs = block
	return record, nil
}

// next decides what follows a sampled turn: a stop, or the calls to answer. A turn that was cut off is never parsed: half a
// call must not run.
func (a *Agent) next(task Task, record TurnRecord, used int) ([]ToolCall, StopReason) {
	if record.Finish == engine.FinishLength {
		return nil, StopLength
	}
	calls := ParseToolCalls(a.tokenizer.Decode(record.IDs))
	switch {
	case len(calls) == 0:
		return nil, Answered
	case used >= task.MaxTokens:
		return nil, StopLength
	case record.Turn+1 >= task.MaxTurns:
		return nil, StopTurns
	}
	return calls, ""
}

func (a *Agent) generate(ctx context.Context, task Task, t *Trajectory) (engine.Generation, error) {
	gen, err := a.engine.Generate(ctx, engine.Request{
		Session: t.Key, Group: task.Group, IDs: slices.Clip(t.IDs), MaxNew: task.MaxTokens - t.ResponseLen(),
		Temperature: task.Temperature, Stop: a.stop, Seed: task.Seed, Address: task.Address.WithTurn(len(t.Turns)),
	})
	doing := fmt.Sprintf("sampling turn %d of trajectory %s", len(t.Turns), t.Key)
	if err != nil {
		return gen, infraUnlessCancelled(ctx, doing, 1, err)
	}
	if err := a.checkGeneration(gen, task, t); err != nil {
		return gen, &InfraError{doing, 1, err}
	}
	return gen, nil
}

// checkGeneration refuses an answer of the engine that would break an invariant of the trajectory.
func (a *Agent) checkGeneration(gen engine.Generation, task Task, t *Trajectory) error {
	n := len(gen.IDs)
	if limit := task.MaxTokens - t.ResponseLen(); n == 0 || n > limit || len(gen.LogProbs) != n || gen.Entropy != nil && len(gen.Entropy) != n {
		return fmt.Errorf("the engine returned %d ids, %d log-probs and %d entropies; expected equal counts from 1 to %d",
			n, len(gen.LogProbs), len(gen.Entropy), limit)
	}
	if stopped := slices.Contains(a.stop, gen.IDs[n-1]); stopped != (gen.Finish == engine.FinishStop) {
		return fmt.Errorf("the engine finished with %q on id %d; %q goes with a stop token", gen.Finish, gen.IDs[n-1], engine.FinishStop)
	}
	if task.Version != "" && gen.Version != task.Version {
		return fmt.Errorf("the engine sampled with weights %q, expected %q", gen.Version, task.Version)
	}
	for i := range n {
		if lp := float64(gen.LogProbs[i]); math.IsNaN(lp) || math.IsInf(lp, 0) {
			return fmt.Errorf("the engine returned log-prob %v for token %d; it must be finite", lp, i)
		}
	}
	return nil
}

// infraUnlessCancelled types an error: the caller's own cancellation is passed on, all else is infrastructure.
func infraUnlessCancelled(ctx context.Context, doing string, attempts int, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, errors.Join(context.Cause(ctx), err))
	}
	return &InfraError{doing, attempts, err}
}
