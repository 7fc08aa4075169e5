package activities

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
)

// Types of failure that no retry can mend. Every other failure is one of infrastructure and is retried.
const (
	ErrInput    = "Input"    // what the user gave: a file, a row, a model folder
	ErrNumerics = "Numerics" // this worker computes other bits than the run's
)

// InputError marks a failure that the user has to mend. nil stays nil.
func InputError(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), ErrInput, err)
}

// applicationError is a failure that a workflow tells apart by its type and that repeating the activity cannot mend.
func applicationError(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, err)
}

// numericsError refuses work whose bits this worker cannot make.
func numericsError(found, expected string) error {
	err := fmt.Errorf("this worker computes %q, the run holds %q: start a worker of that backend and kernel version, or a new run", found, expected)
	return temporal.NewNonRetryableApplicationError(err.Error(), ErrNumerics, err)
}

// IsInputError reports whether a workflow failed for something its user can mend, and says it.
func IsInputError(err error) (string, bool) {
	var app *temporal.ApplicationError
	for errors.As(err, &app) {
		if app.Type() == ErrInput || app.Type() == ErrNumerics {
			return app.Message(), true
		}
		if err = errors.Unwrap(app); err == nil {
			break
		}
	}
	return "", false
}
