package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/restar-rl/restar/workers/sandbox"
)

// Sessions opens sessions of the sandbox. *sandbox.Pool and *client.Client do.
type Sessions interface {
	Open(ctx context.Context, opt sandbox.SessionOptions) (sandbox.Session, error)
}

var _ Sessions = (*sandbox.Pool)(nil)

// notebook runs the stateful calls of one trajectory in a session of its own, which opens with the first cell. A session that is
// lost, for a failure of the infrastructure or because the trajectory goes on elsewhere, is made again: the same cells with the
// same seed bring another one to the same state. A cell that ends its session leaves the next one without any names.
type notebook struct {
	sessions Sessions
	opt      sandbox.SessionOptions
	cells    []sandbox.Call // that made the state
	session  sandbox.Session
}

// notebook of a trajectory as far as it came; nil where no tool needs one.
func (a *Agent) notebook(task Task, t *Trajectory) *notebook {
	sessions, ok := a.runner.(Sessions)
	if !ok || !a.stateful() {
		return nil
	}
	n := &notebook{sessions: sessions, opt: sandbox.SessionOptions{ID: t.Key, Limits: a.config.Limits, Seed: task.toolSeed(0, 0)}}
	for i, turn := range t.Turns {
		calls := ParseToolCalls(a.tokenizer.Decode(t.IDs[turn.Start:turn.End]))
		for j, call := range calls[:min(len(calls), len(turn.Calls))] {
			n.recall(a.tools[call.Name], callID(t.Key, i, j), call, turn.Calls[j])
		}
	}
	return n
}

// recall notes a call whose outcome is known.
func (n *notebook) recall(tool Tool, id string, call ToolCall, outcome ToolOutcome) {
	switch {
	case !tool.Stateful || call.Err != nil:
	case outcome.Type == Timeout:
		n.cells = nil
	case outcome.Type == OK || outcome.Type == ExecError:
		if code, stdin, err := tool.Program(call.Arguments); err == nil {
			n.cells = append(n.cells, sandbox.Call{ID: id, Code: code, Stdin: stdin})
		}
	}
}

func (a *Agent) stateful() bool {
	for _, tool := range a.tools {
		if tool.Stateful {
			return true
		}
	}
	return false
}

// Run implements Runner for one cell after the other.
func (n *notebook) Run(ctx context.Context, cell sandbox.Call) (sandbox.Result, error) {
	if err := n.restore(ctx); err != nil {
		return sandbox.Result{}, err
	}
	r, err := n.session.Run(ctx, cell)
	if err != nil {
		n.close()
		return r, lostSession(err)
	}
	n.cells = append(n.cells, cell)
	if r.SessionEnded {
		n.close()
		n.cells = nil
	}
	return r, nil
}

// restore opens the session and brings it to the state that the cells make.
func (n *notebook) restore(ctx context.Context) error {
	if n.session != nil {
		return nil
	}
	var err error
	if n.session, err = n.sessions.Open(ctx, n.opt); err != nil {
		return err
	}
	for i, cell := range n.cells {
		r, err := n.session.Run(ctx, cell)
		if err != nil {
			n.close()
			return lostSession(err)
		}
		switch {
		case r.Status == sandbox.Timeout: // those that timed out the first time have been left out
			n.close()
			return fmt.Errorf("%w: cell %s timed out when it was run again", sandbox.ErrInfrastructure, cell.ID)
		case r.SessionEnded: // as it did the first time
			n.close()
			n.cells = n.cells[i+1:]
			return n.restore(ctx)
		}
	}
	return nil
}

// lostSession makes the end of a session that no cell ended a failure that may be repeated.
func lostSession(err error) error {
	if errors.Is(err, sandbox.ErrSessionEnded) && !errors.Is(err, sandbox.ErrInfrastructure) {
		return fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, err)
	}
	return err
}

// close ends the session. A nil notebook has none.
func (n *notebook) close() {
	if n != nil && n.session != nil {
		_ = n.session.Close() // one that cannot be told is closed by its node when it has been idle
		n.session = nil
	}
}
