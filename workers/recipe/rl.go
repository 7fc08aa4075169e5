package recipe

import (
	"cmp"

	"github.com/restar-rl/restar/workers/rl"
)

// RL is the algorithm shared by all stages: a name that stands for a paper's parameters, and those that the recipe changes.
type RL struct {
	Algorithm string `yaml:"algorithm" json:"algorithm"` // one of rl.Algorithms

	Selection    string  `yaml:"selection" json:"selection"`       // paper or code (rStar2-Agent §2.2.3 or its released code), or all
	Penalty      string  `yaml:"penalty" json:"penalty,omitempty"` // paper, or code: the released code's count of words in tool responses
	MinPositive  int     `yaml:"min_positive" json:"min_positive"`
	MinNegative  int     `yaml:"min_negative" json:"min_negative"`
	EqualGroups  string  `yaml:"equal_groups" json:"equal_groups"`                 // reject, keep or refill
	MaxRounds    int     `yaml:"max_rounds" json:"max_rounds"`                     // of one refilled batch
	Reward       string  `yaml:"reward" json:"reward"`                             // binary or signed
	Overlong     string  `yaml:"overlong" json:"overlong"`                         // keep, soft or filter
	OverlongRamp int     `yaml:"overlong_ramp_tokens" json:"overlong_ramp_tokens"` // of soft: where the penalty begins, before the stage's limit
	Supervision  string  `yaml:"supervision" json:"supervision,omitempty"`         // outcome, or process: every turn's tool calls earn a reward too
	Baseline     string  `yaml:"baseline" json:"baseline"`                         // mean-std or mean
	LossNorm     string  `yaml:"loss_norm" json:"loss_norm"`                       // token-mean, sequence-mean or constant
	LossConstant int     `yaml:"loss_constant_tokens" json:"loss_constant_tokens"` // of constant
	Ratio        string  `yaml:"ratio" json:"ratio"`                               // token, sequence (GSPO) or weight (CISPO)
	ClipLow      float64 `yaml:"clip_low" json:"clip_low"`
	ClipHigh     float64 `yaml:"clip_high" json:"clip_high"`
	DualClip     float64 `yaml:"dual_clip" json:"dual_clip"`                 // 0: off
	Updates      int     `yaml:"updates_per_round" json:"updates_per_round"` // optimizer steps on the groups of one batch, each on its part
	KLWeight     float64 `yaml:"kl_weight" json:"kl_weight"`                 // of the KL loss towards the stage's reference model; 0: off
	KLEstimator  string  `yaml:"kl_estimator" json:"kl_estimator"`           // k3, k2 or k1
	KLRefresh    int     `yaml:"kl_refresh_steps" json:"kl_refresh_steps"`   // the policy becomes the reference so often; 0: at stage ends
	EntropyShare float64 `yaml:"high_entropy_share" json:"high_entropy_share"`
	PerProblem   int     `yaml:"correct_per_problem" json:"correct_per_problem"` // of rft and star: how many correct samples train; 0: all

	LR            float64 `yaml:"learning_rate" json:"learning_rate"`
	Warmup        int     `yaml:"warmup_steps" json:"warmup_steps"`
	Decay         float64 `yaml:"weight_decay" json:"weight_decay"`
	Beta1         float64 `yaml:"beta1" json:"beta1"`
	Beta2         float64 `yaml:"beta2" json:"beta2"`
	MaxGradNorm   float64 `yaml:"max_grad_norm" json:"max_grad_norm"`
	Temperature   float64 `yaml:"temperature" json:"temperature"`
	StrictAnswers bool    `yaml:"strict_answers" json:"strict_answers"` // only \boxed inside <answer> counts
	// Verifier judges answers: native is exact and needs nothing else; symbolic asks sympy in a sandbox about what native leaves
	// open; compat reproduces the released verifier's rules, tolerances included (rStar2-Agent's fused_compute_score).
	Verifier string `yaml:"verifier" json:"verifier,omitempty"`
}

// releasedMinimum is how many samples of each kind the released selection keeps at least (rStar2-Agent's run script).
const releasedMinimum = 2

// preset holds the parameters of a named algorithm. An unknown name has none, which validation reports.
func preset(name, selection string) RL {
	r := RL{Algorithm: name, LR: 0, Beta1: 0.9, Beta2: 0.999, MaxGradNorm: 1, Temperature: 1, Decay: 0.01, Verifier: "native"}
	a, err := rl.Preset(name)
	if err != nil {
		return r
	}
	r.Selection, r.MinPositive, r.MinNegative = string(a.Selection), a.MinPositive, a.MinNegative
	if selection == string(rl.RoCReleased) {
		r.MinPositive, r.MinNegative = releasedMinimum, releasedMinimum
	}
	r.EqualGroups, r.MaxRounds, r.Reward, r.Overlong, r.OverlongRamp = string(a.Equal), a.MaxRounds, string(a.Reward), string(a.Overlong), a.Ramp
	r.Supervision, r.Penalty = string(a.Supervision), string(a.Penalty)
	r.Baseline, r.LossNorm, r.LossConstant, r.Ratio = string(a.Baseline), string(a.Norm), a.NormLength, string(a.Ratio)
	r.ClipLow, r.ClipHigh, r.DualClip, r.Updates = a.Clip.Low, a.Clip.High, a.Clip.Dual, a.Updates
	r.KLWeight, r.KLEstimator, r.KLRefresh = a.KLBeta, string(a.KLEstimator), a.KLRefresh
	r.EntropyShare, r.PerProblem = a.EntropyTop, a.PerProblem
	if name == starAlgorithm {
		r.Decay = 0 // Adam without weight decay (STaR, App H)
	}
	return r
}

// completed sets what a recipe lacks that an earlier version stored, which did not know the keys.
func (r RL) completed() RL {
	p := preset(r.Algorithm, r.Selection)
	r.Supervision, r.Penalty, r.Verifier = cmp.Or(r.Supervision, p.Supervision), cmp.Or(r.Penalty, p.Penalty), cmp.Or(r.Verifier, p.Verifier)
	return r
}

// Completed is a stored recipe as this version would have stored it.
func (r Recipe) Completed() Recipe {
	r.RL = r.RL.completed()
	return r
}

// Parameters are the algorithm's parameters as the decisions of package rl take them.
func (r RL) Parameters() (rl.Algorithm, error) {
	a, err := rl.Preset(r.Algorithm)
	if err != nil {
		return a, err
	}
	a.Selection, a.MinPositive, a.MinNegative = rl.Method(r.Selection), r.MinPositive, r.MinNegative
	a.Equal, a.MaxRounds, a.Reward = rl.EqualGroups(r.EqualGroups), r.MaxRounds, rl.RewardScale(r.Reward)
	a.Overlong, a.Ramp = rl.OverlongRule(r.Overlong), r.OverlongRamp
	r = r.completed()
	a.Supervision, a.Penalty = rl.Supervision(r.Supervision), rl.PenaltyRule(r.Penalty)
	a.Baseline, a.Norm, a.NormLength = rl.Baseline(r.Baseline), rl.LossNorm(r.LossNorm), r.LossConstant
	a.Loss = rl.Loss{
		Ratio: rl.RatioKind(r.Ratio), Clip: rl.Clip{Low: r.ClipLow, High: r.ClipHigh, Dual: r.DualClip},
		KLBeta: r.KLWeight, KLEstimator: rl.KLEstimator(r.KLEstimator),
	}
	a.Updates, a.KLRefresh, a.EntropyTop, a.PerProblem = r.Updates, r.KLRefresh, r.EntropyShare, r.PerProblem
	return a, a.Check()
}
