// Package numerics names the bits that this machine computes.
package numerics

import (
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/kernels/cpu"
	"github.com/restar-rl/restar/workers/model"
)

// ID is model.NumericsOf a precision, or a user error that names the variable which asks for what this processor cannot do. Nothing may
// be written in the name of an empty id: no machine could ever continue it.
func ID(p model.Precision) (string, error) {
	if _, err := cpu.FromEnv(); err != nil {
		return "", fault.AsUser(err)
	}
	return model.NumericsOf(p), nil
}
