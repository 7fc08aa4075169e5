package agent

import (
	"context"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/sandbox"
)

// Engine samples turns. *engine.Engine is one.
type Engine interface {
	// Generate samples one turn after req.IDs. It may be called from many goroutines.
	Generate(ctx context.Context, req engine.Request) (engine.Generation, error)
	// Release drops what is kept for a session between its turns. A session that is not known is no error.
	Release(session string)
}

// Runner runs one program in isolation. *sandbox.Pool is one. An error is a failure of the infrastructure; whatever the
// program itself does is a Result.
type Runner = sandbox.Runner

// Judge compares what the model wrote with the reference answer of the task's problem. Its text holds the model's own words
// only. An error is a failure of the infrastructure.
type Judge func(ctx context.Context, modelText string) (Verdict, error)

// Verdict is a three-valued judgement of a final answer.
type Verdict struct {
	Outcome Outcome `json:"outcome"`
	Answer  string  `json:"answer,omitempty"` // as extracted
	Path    string  `json:"path,omitempty"`   // which rule found or compared it
	Reason  string  `json:"reason,omitempty"` // why it is not correct
}

// Outcome is correct, wrong or unknown. Unknown is never wrong: such a trajectory does not train and does not score.
type Outcome string

// The outcomes of a verdict.
const (
	Correct Outcome = "correct"
	Wrong   Outcome = "wrong"
	Unknown Outcome = "unknown"
)
