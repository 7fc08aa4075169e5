package training

import (
	"context"
	"errors"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workflows"
	"go.temporal.io/api/serviceerror"
)

// Curves are what a finished run learned, for drawing and comparing.
type Curves struct {
	Run       string  `json:"run"`
	Algorithm string  `json:"algorithm"`
	Seed      uint64  `json:"seed"`
	MinutesRL float64 `json:"minutes_rl"` // from the start of the first stage to the end of the run; 0 without stages
	// SecondsOfStages is the wall time of the stages themselves, the evaluations after them left out.
	SecondsOfStages float64 `json:"seconds_of_stages"`
	activities.Curves
}

// writeCurves reads what the run left in the store.
func writeCurves(ctx context.Context, s *session.Session, r recipe.Recipe, o Options) error {
	c := Curves{Run: o.Run, Algorithm: r.RL.Algorithm, Seed: r.Seed}
	var err error
	if c.Curves, err = activities.ReadCurves(ctx, s.Store, o.Run, r); err != nil {
		return err
	}
	for i, st := range r.Stages {
		stage := workflows.ReinforceID(o.Run, st.Name)
		took, err := between(ctx, s.Client, stage, stage)
		var none *serviceerror.NotFound
		if errors.As(err, &none) {
			break // the run was stopped before this stage
		}
		if err != nil {
			return err
		}
		c.SecondsOfStages += took.Seconds()
		if i > 0 {
			continue
		}
		if took, err = between(ctx, s.Client, stage, workflows.RunID(o.Run)); err != nil {
			return err
		}
		c.MinutesRL = took.Minutes()
	}
	return writeJSON(o.Curves, c)
}
