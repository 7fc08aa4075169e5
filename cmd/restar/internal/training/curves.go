package training

import (
	"context"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/session"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workflows"
)

// Curves are what a finished run learned, for drawing and comparing.
type Curves struct {
	Run       string  `json:"run"`
	Algorithm string  `json:"algorithm"`
	Seed      uint64  `json:"seed"`
	MinutesRL float64 `json:"minutes_rl"` // from the start of the first stage to the end of the run; 0 without stages
	activities.Curves
}

// writeCurves reads what the run left in the store.
func writeCurves(ctx context.Context, s *session.Session, r recipe.Recipe, o Options) error {
	c := Curves{Run: o.Run, Algorithm: r.RL.Algorithm, Seed: r.Seed}
	var err error
	if c.Curves, err = activities.ReadCurves(ctx, s.Store, o.Run, r); err != nil {
		return err
	}
	if len(r.Stages) > 0 {
		took, err := since(ctx, s.Client, o.Run, workflows.ReinforceID(o.Run, r.Stages[0].Name))
		if err != nil {
			return err
		}
		c.MinutesRL = took.Minutes()
	}
	return writeJSON(o.Curves, c)
}
