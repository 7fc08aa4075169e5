// Package fault sorts errors by who can mend them, which is what an exit code tells a script.
package fault

import (
	"context"
	"errors"
	"fmt"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/local"
	"github.com/restar-rl/restar/workers/store"
)

// Exit codes of restar.
const (
	OK          = 0
	Internal    = 1   // restar's own
	User        = 2   // the input's or the machine's: the message says what to change
	Interrupted = 130 // by Ctrl-C, as shells count it
)

// ErrInterrupted ends a command that was asked to stop and did so in order.
var ErrInterrupted = errors.New("interrupted")

// userError is an error that the user can mend.
type userError struct{ err error }

func (e userError) Error() string { return e.err.Error() }
func (e userError) Unwrap() error { return e.err }

// Userf makes an error that the user can mend; its text names the thing and says how.
func Userf(format string, args ...any) error { return userError{fmt.Errorf(format, args...)} }

// AsUser marks err as one that the user can mend. nil stays nil.
func AsUser(err error) error {
	if err == nil {
		return nil
	}
	return userError{err}
}

// Code is the exit code for an error.
func Code(err error) int {
	var user userError
	var stack *local.UserError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &user), errors.As(err, &stack), errors.Is(err, store.ErrNoSpace):
		return User
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return Interrupted
	}
	if _, ok := activities.IsInputError(err); ok {
		return User
	}
	return Internal
}

// Text is what to tell about an error: for a run that failed because of its input, the failed check's own words and not
// the chain of workflows around it.
func Text(err error) string {
	if msg, ok := activities.IsInputError(err); ok {
		return msg
	}
	return err.Error()
}
