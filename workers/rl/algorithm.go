package rl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// EqualGroups says what happens to a group whose rewards are all equal and which therefore teaches nothing.
type EqualGroups string

// The policies for equal groups.
const (
	RejectEqual EqualGroups = "reject" // left out, and the batch shrinks (rStar2-Agent)
	KeepEqual   EqualGroups = "keep"   // counts in the denominator with advantage 0 (DeepSeekMath)
	RefillEqual EqualGroups = "refill" // more prompts are sampled until the batch is full (DAPO dynamic sampling)
)

// RewardScale maps an outcome to a reward.
type RewardScale string

// The scales. They differ only where something is added to the reward.
const (
	BinaryReward RewardScale = "binary" // 1 and 0
	SignedReward RewardScale = "signed" // +1 and -1 (DAPO Eq 7)
)

// Supervision says which rewards a group's advantages come from.
type Supervision string

// The kinds of supervision (DeepSeekMath §4.1.2 and §4.1.3).
const (
	OutcomeSupervision Supervision = "outcome" // one reward a rollout, the same advantage for all its tokens
	ProcessSupervision Supervision = "process" // a reward a step too, and ProcessAdvantages
)

// OverlongRule says what happens to rollouts that ran out of tokens or turns.
type OverlongRule string

// The rules for overlong rollouts.
const (
	OverlongKeep   OverlongRule = "keep"   // a wrong answer like any other (rStar2-Agent §4.3.1)
	OverlongSoft   OverlongRule = "soft"   // OverlongPenalty is added to the reward (DAPO Eq 13)
	OverlongFilter OverlongRule = "filter" // the rollout counts in its group's mean and is left out of the loss (DAPO §3.4)
)

// PenaltyRule says by what the selections measure how untidy a rollout was.
type PenaltyRule string

// The penalty rules.
const (
	TypedPenalty    PenaltyRule = "paper" // PaperPenalty, of typed tool outcomes (rStar2-Agent Eq 4 and 5)
	ReleasedPenalty PenaltyRule = "code"  // LegacyPenalty, of the words in the decoded response (the released code)
)

// Algorithm is everything by which the relatives of group-relative policy optimisation differ.
type Algorithm struct {
	Name        string
	Selection   Method
	Penalty     PenaltyRule
	MinPositive int // of a group, where they exist; 0 is off
	MinNegative int
	Equal       EqualGroups
	MaxRounds   int // rollout rounds of one batch when Equal refills, else 0
	Reward      RewardScale
	Overlong    OverlongRule
	Ramp        int // tokens before the limit from which OverlongSoft falls
	Supervision Supervision
	Baseline    Baseline
	Norm        LossNorm
	NormLength  int // the constant of ConstantNorm
	Loss
	Updates    int     // optimizer steps a rollout round, each on its part of the groups
	KLRefresh  int     // steps after which the reference becomes the policy; 0 is never within a stage
	EntropyTop float64 // share of sampled tokens of highest entropy that train; 1 is all
	Imitate    bool    // negative log-likelihood of the correct samples instead of a policy gradient (RFT, STaR)
	PerProblem int     // correct samples of a problem that Imitate takes; 0 is all
}

// grpo is the ground that all stand on.
var grpo = Algorithm{
	Name: "grpo", Selection: KeepAll, Penalty: TypedPenalty, Equal: RejectEqual, Reward: BinaryReward, Overlong: OverlongKeep, Supervision: OutcomeSupervision, Baseline: MeanStd, Norm: TokenMean,
	Loss: Loss{Ratio: TokenRatio, Clip: Clip{Low: 0.2, High: 0.28}, KLEstimator: K3Estimator}, Updates: 1, EntropyTop: 1,
}

// Algorithms lists the named algorithms in alphabetical order.
func Algorithms() []string { return slices.Sorted(maps.Keys(presets)) }

// presets hold the papers' values; a recipe may change each of them.
var presets = map[string]func(a *Algorithm){
	// rStar2-Agent's ablation "GRPO with tool" (Fig 4): the same without Resample-on-Correct.
	"grpo": func(*Algorithm) {},
	// rStar2-Agent §2.2.3: 2G rollouts, half of them kept by tidiness among the correct ones.
	"grpo-roc": func(a *Algorithm) { a.Selection = RoCPaper },
	// DAPO (arXiv 2503.14476) §3 and §4.1.
	"dapo": func(a *Algorithm) {
		a.Equal, a.MaxRounds, a.Reward = RefillEqual, 10, SignedReward
		a.Overlong, a.Ramp, a.Clip.Dual, a.Updates = OverlongSoft, 4096, 10, 16
	},
	// DeepSeekMath (arXiv 2402.03300) §4.1 and §4.2: per-sequence means, KL in the loss, symmetric clip.
	"deepseekmath": func(a *Algorithm) {
		a.Equal, a.Norm, a.Clip, a.KLBeta = KeepEqual, SequenceMean, Clip{Low: 0.2, High: 0.2}, 0.04
	},
	// Dr.GRPO (arXiv 2503.20783) §3.2: no division by standard deviation or length.
	"dr-grpo": func(a *Algorithm) { a.Baseline, a.Norm, a.Clip = MeanOnly, ConstantNorm, Clip{Low: 0.2, High: 0.2} },
	// GSPO (arXiv 2507.18071) §5.1: ratio and clip of whole sequences.
	"gspo": func(a *Algorithm) {
		a.Ratio, a.Norm, a.Clip = SequenceRatio, SequenceMean, Clip{Low: 3e-4, High: 4e-4}
	},
	// CISPO (MiniMax-M1, arXiv 2506.13585) §3.1: only the upper bound of the weight is in use.
	"cispo": func(a *Algorithm) { a.Ratio, a.Clip = WeightRatio, Clip{Low: 1, High: 0.28} },
	// Online rejection-sampling fine-tuning (DeepSeekMath §5.2.1) and STaR's inner loop.
	"rft": func(a *Algorithm) { a.Imitate, a.PerProblem = true, 0 },
	// STaR (arXiv 2203.14465) Alg 1: one solution of a problem, and a fresh start from the base in every iteration.
	"star": func(a *Algorithm) { a.Imitate, a.PerProblem = true, 1 },
}

// Preset returns a named algorithm with its paper's values.
func Preset(name string) (Algorithm, error) {
	change, ok := presets[name]
	if !ok {
		return Algorithm{}, fmt.Errorf("algorithm %q is not known; use one of %q", name, Algorithms())
	}
	a := grpo
	a.Name = name
	change(&a)
	return a, nil
}

// maxRefills bounds the rounds of one batch: DAPO's own limit is 10, and one history holds the events of a hundred rounds.
const maxRefills = 100

// Check reports every parameter that is out of range or contradicts another.
func (a Algorithm) Check() error {
	var errs []error
	that := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	errs = append(errs, a.Loss.Check())
	that(oneOf(a.Selection, RoCPaper, RoCReleased, KeepAll), "selection is %q, want %q, %q or %q", a.Selection, RoCPaper, RoCReleased, KeepAll)
	that(oneOf(a.Penalty, TypedPenalty, ReleasedPenalty), "penalty is %q, want %q or %q", a.Penalty, TypedPenalty, ReleasedPenalty)
	that(a.Selection != KeepAll || a.Penalty == TypedPenalty, "penalty is %q and selection is %q, which measures none; want %q", a.Penalty, a.Selection, TypedPenalty)
	that(a.MinPositive >= 0 && a.MinNegative >= 0, "min_positive and min_negative are %d and %d, want 0 or more", a.MinPositive, a.MinNegative)
	that(a.Selection != KeepAll || a.MinPositive+a.MinNegative == 0, "min_positive or min_negative is set and selection is %q, which selects nothing; set both to 0", a.Selection)
	that(oneOf(a.Equal, RejectEqual, KeepEqual, RefillEqual), "equal_groups is %q, want %q, %q or %q", a.Equal, RejectEqual, KeepEqual, RefillEqual)
	that(a.MaxRounds >= 0, "max_rounds is %d, want 0 or more", a.MaxRounds)
	that(a.Equal != RefillEqual || (a.MaxRounds >= 1 && a.MaxRounds <= maxRefills), "max_rounds is %d and equal_groups is %q, want 1 to %d: a policy without mixed groups would sample for ever", a.MaxRounds, a.Equal, maxRefills)
	that(a.MaxRounds == 0 || a.Equal == RefillEqual, "max_rounds is %d and equal_groups is %q, want %q", a.MaxRounds, a.Equal, RefillEqual)
	that(oneOf(a.Reward, BinaryReward, SignedReward), "reward is %q, want %q or %q", a.Reward, BinaryReward, SignedReward)
	that(oneOf(a.Overlong, OverlongKeep, OverlongSoft, OverlongFilter), "overlong is %q, want %q, %q or %q", a.Overlong, OverlongKeep, OverlongSoft, OverlongFilter)
	that((a.Overlong == OverlongSoft) == (a.Ramp > 0), "overlong is %q with overlong_ramp_tokens %d, want a positive ramp with %q and 0 without", a.Overlong, a.Ramp, OverlongSoft)
	that(oneOf(a.Supervision, OutcomeSupervision, ProcessSupervision), "supervision is %q, want %q or %q", a.Supervision, OutcomeSupervision, ProcessSupervision)
	that(a.Supervision != ProcessSupervision || a.Baseline == MeanStd && !a.Imitate, "supervision is %q with baseline %q and imitation %v, want baseline %q and no imitation: step rewards are normalised over the group", a.Supervision, a.Baseline, a.Imitate, MeanStd)
	that(oneOf(a.Baseline, MeanStd, MeanOnly), "baseline is %q, want %q or %q", a.Baseline, MeanStd, MeanOnly)
	that(oneOf(a.Norm, TokenMean, SequenceMean, ConstantNorm), "loss_norm is %q, want %q, %q or %q", a.Norm, TokenMean, SequenceMean, ConstantNorm)
	that((a.Norm == ConstantNorm) == (a.NormLength > 0), "loss_norm is %q with loss_constant_tokens %d, want a positive one with %q and 0 without", a.Norm, a.NormLength, ConstantNorm)
	that(a.Updates >= 1, "updates_per_round is %d, want 1 or more", a.Updates)
	that(a.KLRefresh >= 0 && (a.KLRefresh == 0 || a.KLBeta > 0), "kl_refresh_steps is %d with kl_weight %v, want 0 without a weight", a.KLRefresh, a.KLBeta)
	that(a.KLBeta > 0 || a.KLEstimator == K3Estimator, "kl_estimator is %q with kl_weight 0, want a weight for it to estimate, or %q", a.KLEstimator, K3Estimator)
	that(a.EntropyTop > 0 && a.EntropyTop <= 1, "high_entropy_share is %v, want above 0 and at most 1", a.EntropyTop)
	that(!a.Imitate || a.KLBeta == 0 && a.Importance == 0 && a.Selection == KeepAll, "imitation of correct samples has kl_weight %v, importance_limit %v and selection %q, want 0, 0 and all", a.KLBeta, a.Importance, a.Selection)
	that(a.PerProblem >= 0 && (a.PerProblem == 0 || a.Imitate), "correct_per_problem is %d, want 0 without imitation (rft, star)", a.PerProblem)
	return errors.Join(errs...)
}

func oneOf[T comparable](x T, among ...T) bool { return slices.Contains(among, x) }

// Outcomes returns the reward of each rollout of a group by the algorithm's scale and overlong rule. limit is the stage's
// longest response and tokens the response length of each, in tokens.
func (a Algorithm) Outcomes(group []Sample, tokens []int, limit int) ([]float64, error) {
	if len(tokens) != len(group) {
		return nil, fmt.Errorf("%d rollouts have %d lengths; the counts must agree", len(group), len(tokens))
	}
	rewards := make([]float64, len(group))
	for i, s := range group {
		r := s.Reward
		if a.Reward == SignedReward {
			r = 2*r - 1
		}
		if a.Overlong == OverlongSoft {
			p, err := OverlongPenalty(tokens[i], limit, a.Ramp)
			if err != nil {
				return nil, err
			}
			r += p
		}
		rewards[i] = r
	}
	return rewards, nil
}
