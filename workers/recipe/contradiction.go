package recipe

import (
	"fmt"

	"github.com/restar-rl/restar/workers/rl"
)

// checkUnread reports the parameters that an imitation of correct samples (rft, star) never reads and that a recipe changes
// nevertheless.
func (r RL) checkUnread(c *checks, a rl.Algorithm) {
	if !a.Imitate {
		return
	}
	p := preset(r.Algorithm, "")
	type parameter struct {
		key       string
		got, want any
	}
	unread := []parameter{
		{"reward", r.Reward, p.Reward}, {"overlong", r.Overlong, p.Overlong}, {"baseline", r.Baseline, p.Baseline}, {"ratio", r.Ratio, p.Ratio},
		{"clip_low", r.ClipLow, p.ClipLow}, {"clip_high", r.ClipHigh, p.ClipHigh}, {"dual_clip", r.DualClip, p.DualClip},
	}
	if r.Algorithm == starAlgorithm {
		unread = append(unread, parameter{"selection", r.Selection, p.Selection}, parameter{"equal_groups", r.EqualGroups, p.EqualGroups},
			parameter{"updates_per_round", r.Updates, p.Updates}, parameter{"kl_weight", r.KLWeight, p.KLWeight},
			parameter{"high_entropy_share", r.EntropyShare, p.EntropyShare})
	} else {
		c.that(r.EqualGroups != string(rl.KeepEqual), "rl.equal_groups", r.EqualGroups, fmt.Sprintf("%s or %s: with %s a group without a correct sample has nothing to keep", rl.RejectEqual, rl.RefillEqual, r.Algorithm))
	}
	for _, k := range unread {
		c.that(k.got == k.want, "rl."+k.key, k.got, fmt.Sprintf("nothing with %s, which fine-tunes on correct samples (%v stands for that)", r.Algorithm, k.want))
	}
}

// checkAlgorithm reports what the stage is too small for. It would else be found only when the first batch is chosen.
func (s Stage) checkAlgorithm(c *checks, at string, a rl.Algorithm) {
	c.that(a.Ramp <= s.ResponseTokens, "rl.overlong_ramp_tokens", a.Ramp, fmt.Sprintf("at most %sresponse_tokens (%d), before whose end the penalty begins", at, s.ResponseTokens))
	if s.Star != nil {
		return
	}
	c.that(a.MinPositive+a.MinNegative <= s.Keep, "rl.min_positive and rl.min_negative", a.MinPositive+a.MinNegative, fmt.Sprintf("at most %skeep (%d) together", at, s.Keep))
	c.that(a.Updates <= s.Prompts, "rl.updates_per_round", a.Updates, fmt.Sprintf("at most %sprompts (%d): each update trains on groups of its own", at, s.Prompts))
}
