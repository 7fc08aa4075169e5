package rl

import (
	"errors"
	"fmt"
	"math"
)

// Loss is what a policy-gradient loss makes of a token's probabilities.
type Loss struct {
	Ratio       RatioKind
	Clip        Clip
	KLBeta      float64 // weight of the KL loss towards a reference; 0 is off
	KLEstimator KLEstimator
	Importance  float64 // limit of the truncated importance weight; 0 is off
}

// Check reports every parameter that is out of range or contradicts another.
func (l Loss) Check() error {
	var errs []error
	that := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	errs = append(errs, l.Clip.check(), l.Ratio.check(), l.KLEstimator.check())
	that(l.KLBeta >= 0 && !math.IsInf(l.KLBeta, 0), "kl_weight is %v, want a finite number of at least 0", l.KLBeta)
	that(l.Importance == 0 || (l.Importance >= 1 && !math.IsInf(l.Importance, 0)), "importance_limit is %v, want 0 (off) or at least 1", l.Importance)
	that(l.Clip.Dual == 0 || l.Ratio == TokenRatio, "dual_clip is %v with ratio %q, want 0: it is defined for %q", l.Clip.Dual, l.Ratio, TokenRatio)
	return errors.Join(errs...)
}
