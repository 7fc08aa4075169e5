package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restar-rl/restar/workers/sandbox"
)

// execution is one call that became a program, and what came of it.
type execution struct {
	result  sandbox.Result
	retries int
	ran     bool
}

// answer gives every call of a turn its outcome, in order. The calls allowed run at the same time, cells one after the other; an
// infrastructure failure of one fails the turn, since a turn without one of its outcomes could never be the same again.
func (a *Agent) answer(ctx context.Context, task Task, turn int, calls []ToolCall, book *notebook, timings *Timings) ([]ToolOutcome, error) {
	begin := time.Now()
	outcomes := make([]ToolOutcome, len(calls))
	executions := make([]execution, len(calls))
	group, ctx := errgroup.WithContext(ctx)
	run := func(i int, on Runner) (err error) {
		outcomes[i], executions[i], err = a.call(ctx, on, callID(task.Key(), turn, i), calls[i], task.toolSeed(turn, i))
		return err
	}
	var cells []int
	for i, call := range calls {
		switch {
		case i >= a.config.CallsPerTurn:
			outcomes[i] = a.notRun(call)
		case a.tools[call.Name].Stateful:
			cells = append(cells, i)
		default:
			group.Go(func() error { return run(i, a.runner) })
		}
	}
	group.Go(func() error {
		for _, i := range cells {
			if err := run(i, book); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, e := range executions {
		timings.addExecution(e)
	}
	timings.Tools = time.Since(begin)
	return outcomes, nil
}

// callID names a call; its part before "/turn " is the rollout.
func callID(key string, turn, call int) string {
	return fmt.Sprintf("%s/turn %d/call %d", key, turn, call)
}

func (a *Agent) notRun(call ToolCall) ToolOutcome {
	err := fmt.Errorf("only %d tool calls per turn are run; this one was not", a.config.CallsPerTurn)
	return ToolOutcome{NotRun, a.config.Format.executeResponse(err), callDigest(call)}
}

// call gives one call its outcome. Faults of the call are outcomes; only infrastructure failures and cancellation are errors.
func (a *Agent) call(ctx context.Context, on Runner, id string, call ToolCall, seed uint64) (ToolOutcome, execution, error) {
	outcome := ToolOutcome{Call: callDigest(call)}
	format := a.config.Format
	if call.Err != nil {
		outcome.Type, outcome.Text = ParseError, format.parseResponse(call.Err)
		return outcome, execution{}, nil
	}
	tool, ok := a.tools[call.Name]
	if !ok {
		outcome.Type, outcome.Text = UnknownTool, format.executeResponse(fmt.Errorf("'%s' is not a tool", call.Name))
		return outcome, execution{}, nil
	}
	code, stdin, err := tool.Program(call.Arguments)
	if err != nil {
		outcome.Type, outcome.Text = ParseError, format.executeResponse(err)
		return outcome, execution{}, nil
	}
	e, err := a.execute(ctx, on, sandbox.Call{ID: id, Code: code, Stdin: stdin, Limits: a.config.Limits, Seed: seed})
	if err != nil {
		return outcome, e, err
	}
	outcome.Type, outcome.Text = outcomeOf(e.result.Status), FormatToolResponse(e.result, format)
	return outcome, e, nil
}

// outcomeOf types the end of a program.
func outcomeOf(s sandbox.Status) OutcomeType {
	switch s {
	case sandbox.Success:
		return OK
	case sandbox.Timeout:
		return Timeout
	default:
		return ExecError
	}
}

// execute runs a program, trying again while the sandbox itself fails.
func (a *Agent) execute(ctx context.Context, on Runner, call sandbox.Call) (execution, error) {
	doing := "running tool call " + call.ID + " in the sandbox"
	policy := a.config.Retry
	wait := policy.Base
	for attempt := 1; ; attempt++ {
		result, err := a.attempt(ctx, on, call)
		if err == nil {
			return execution{result, attempt - 1, true}, nil
		}
		if attempt >= policy.Attempts || ctx.Err() != nil || !mayRepeat(err) {
			return execution{}, infraUnlessCancelled(ctx, doing, attempt, err)
		}
		select {
		case <-ctx.Done():
			return execution{}, infraUnlessCancelled(ctx, doing, attempt, err)
		case <-time.After(wait):
		}
		wait = min(2*wait, policy.Cap)
	}
}

var errUnknownStatus = errors.New("the sandbox returned a status that is not known")

// mayRepeat tells failures of the sandbox, an attempt's deadline included, from requests that it will refuse for ever.
func mayRepeat(err error) bool {
	return errors.Is(err, sandbox.ErrInfrastructure) || errors.Is(err, context.DeadlineExceeded)
}

func (a *Agent) attempt(ctx context.Context, on Runner, call sandbox.Call) (sandbox.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Retry.Deadline)
	defer cancel()
	result, err := on.Run(ctx, call)
	if err != nil {
		return result, err
	}
	switch result.Status {
	case sandbox.Success, sandbox.Error, sandbox.Timeout, sandbox.OOM, sandbox.Killed, sandbox.OutputLimit:
		return result, nil
	default:
		return result, fmt.Errorf("%w: %q", errUnknownStatus, result.Status)
	}
}

func (t *Timings) addExecution(e execution) {
	t.Retries += e.retries
	t.Queue += e.result.Queue
	t.CPU += e.result.CPU
	if e.ran && e.result.Status != sandbox.Timeout {
		t.MaxCPU, t.MaxWall = max(t.MaxCPU, e.result.CPU), max(t.MaxWall, e.result.Wall)
	}
}
