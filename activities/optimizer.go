package activities

import (
	"github.com/restar-rl/restar/workers/rl"
	"github.com/restar-rl/restar/workers/train"
)

// objective is the loss of a recipe's reinforcement learning.
func objective(alg rl.Algorithm) train.Objective {
	if alg.Imitate {
		return train.Objective{Kind: train.SFT, Norm: alg.Norm, MaxLength: alg.NormLength}
	}
	return train.Objective{
		Kind: train.PolicyGradient, Ratio: alg.Ratio, Clip: alg.Clip, Norm: alg.Norm, MaxLength: alg.NormLength,
		KLBeta: alg.KLBeta, KLEstimator: alg.KLEstimator,
	}
}

// optimizer is AdamW at a constant rate after a linear warm-up (rStar2-Agent §5.1). A stage may have a rate of its own.
func optimizer(rec Recipe, stage string) train.Optimizer {
	lr := rec.RL.LR
	if i := stageIndex(rec, stage); i >= 0 && rec.Stages[i].LR != 0 {
		lr = rec.Stages[i].LR
	}
	return train.Optimizer{
		LR: lr, Beta1: rec.RL.Beta1, Beta2: rec.RL.Beta2, WeightDecay: rec.RL.Decay, ClipNorm: rec.RL.MaxGradNorm,
		Schedule: train.Constant, WarmupSteps: rec.RL.Warmup,
	}
}

// fineTuneOptimizer is AdamW with the recipe's schedule.
func fineTuneOptimizer(rec Recipe) train.Optimizer {
	return train.Optimizer{
		LR: rec.SFT.LR, Beta1: rec.RL.Beta1, Beta2: rec.RL.Beta2, WeightDecay: rec.SFT.Decay, ClipNorm: rec.RL.MaxGradNorm,
		Schedule: train.Schedule(rec.SFT.Schedule), WarmupSteps: rec.SFT.Warmup, TotalSteps: rec.SFT.Steps,
	}
}
