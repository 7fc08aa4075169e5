package activities

import "github.com/restar-rl/restar/workers/rl"

// StageEnds decides, from the share of all-correct groups in a stage's latest rounds, oldest first, whether the stage has
// nothing left to teach (rStar2-Agent §4.3). It is pure, so workflows may ask it.
func StageEnds(s Stage, allCorrect []float64) bool {
	history := make([]rl.Observation, len(allCorrect))
	for i, share := range allCorrect {
		history[i] = rl.Observation{AllCorrectShare: share}
	}
	return rl.StageEnds(rl.StageRule{MaxAllCorrect: s.MaxAllCorrect, Window: s.Window}, history).Done
}
