package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// OutcomeType says how a tool call ended for the model. Infrastructure failures have no type: they end the run of the
// trajectory with an *InfraError.
type OutcomeType string

// The types of a tool outcome. All but OK and NotRun are errors of the model.
const (
	OK          OutcomeType = "ok"
	ExecError   OutcomeType = "error"        // the program failed, or broke a limit other than time
	Timeout     OutcomeType = "timeout"      // the program used up its time
	ParseError  OutcomeType = "parse_error"  // not a call: bad JSON, missing keys, arguments that the tool cannot read
	UnknownTool OutcomeType = "unknown_tool" // a well-formed call of a tool that does not exist
	NotRun      OutcomeType = "not_run"      // beyond the calls a turn may make; neither a call nor an error
)

// IsError reports whether the outcome counts as a failed call in the tool-error penalty (rStar2-Agent Eq 4).
func (o OutcomeType) IsError() bool { return o != OK && o != NotRun }

// ToolOutcome is one answered call. The first one recorded is the outcome for ever: continuing a trajectory never runs it
// again.
type ToolOutcome struct {
	Type OutcomeType `json:"type"`
	Text string      `json:"text"` // the tool response as the model reads it
	Call string      `json:"call"` // digest of the call as written, to find repetitions
}

// callDigestBytes is enough to tell the calls of one trajectory apart.
const callDigestBytes = 8

func callDigest(call ToolCall) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(call.Body)))
	return hex.EncodeToString(sum[:callDigestBytes])
}

// InfraError is a failure of the machinery around the model. The trajectory is not finished and may be continued from its
// last recorded turn; it says nothing about the model.
type InfraError struct {
	Doing    string // what was being done
	Attempts int
	Err      error
}

// Error names what was being done, how often it was tried, and the last cause.
func (e *InfraError) Error() string {
	return fmt.Sprintf("infrastructure: %s failed after %d attempts: %v", e.Doing, e.Attempts, e.Err)
}

// Unwrap returns the last cause.
func (e *InfraError) Unwrap() error { return e.Err }

// IsInfra reports whether an error is a failure of the infrastructure.
func IsInfra(err error) bool {
	var infra *InfraError
	return errors.As(err, &infra)
}

func missingArgument(name string) error { return fmt.Errorf("missing required argument '%s'", name) }

func argumentError(err error) error { return fmt.Errorf("bad arguments: %w", err) }
