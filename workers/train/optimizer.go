package train

import (
	"fmt"
	"math"
)

// Schedule is how the learning rate moves after warm-up.
type Schedule string

// The schedules. The empty one is constant.
const (
	Constant Schedule = "constant"
	Cosine   Schedule = "cosine" // half a cosine from LR towards 0 at TotalSteps (Loshchilov and Hutter 2017, eq. 5)
)

// defaultEps is AdamW's usual denominator term (Kingma and Ba 2015).
const defaultEps = 1e-8

// Optimizer is AdamW (Loshchilov and Hutter 2019) with global norm clipping. Weight decay applies to every tensor.
type Optimizer struct {
	LR           float64
	Beta1, Beta2 float64
	Eps          float64 // 0 takes 1e-8
	WeightDecay  float64
	ClipNorm     float64 // 0 does not clip
	Schedule     Schedule
	WarmupSteps  int // the rate rises linearly from LR/WarmupSteps at the first update
	TotalSteps   int // updates of the whole schedule; Cosine alone reads it
}

func (o Optimizer) validate() error {
	bad := func(name string, got any, want string) error {
		return fmt.Errorf("train: optimizer %s is %v, want %s", name, got, want)
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"LR", o.LR}, {"Eps", o.Eps}, {"WeightDecay", o.WeightDecay}, {"ClipNorm", o.ClipNorm}} {
		if !(f.value >= 0) || !isFinite(f.value) {
			return bad(f.name, f.value, "a finite number of at least 0")
		}
	}
	if !(o.Beta1 >= 0 && o.Beta1 < 1 && o.Beta2 >= 0 && o.Beta2 < 1) {
		return bad("Beta1, Beta2", [2]float64{o.Beta1, o.Beta2}, "numbers in [0,1)")
	}
	switch {
	case o.WarmupSteps < 0:
		return bad("WarmupSteps", o.WarmupSteps, "at least 0")
	case o.Schedule == Cosine && o.TotalSteps <= o.WarmupSteps:
		return bad("TotalSteps", o.TotalSteps, fmt.Sprintf("more than the %d warm-up steps", o.WarmupSteps))
	case o.Schedule != "" && o.Schedule != Constant && o.Schedule != Cosine:
		return bad("Schedule", o.Schedule, fmt.Sprintf("%q or %q", Constant, Cosine))
	}
	return nil
}

// rate is the learning rate of an update, counted from 1.
func (o Optimizer) rate(update int64) float64 {
	w := int64(o.WarmupSteps)
	switch {
	case update <= w:
		return o.LR * float64(update) / float64(w)
	case o.Schedule != Cosine:
		return o.LR
	}
	done := float64(update-1-w) / float64(int64(o.TotalSteps)-w)
	return o.LR * 0.5 * (1 + math.Cos(math.Pi*min(done, 1)))
}

// clip is the factor that brings a gradient of a norm down to ClipNorm, as torch.nn.utils.clip_grad_norm_ computes it.
func (o Optimizer) clip(norm float64) float64 {
	if o.ClipNorm == 0 {
		return 1
	}
	return min(1, o.ClipNorm/(norm+1e-6))
}

func (o Optimizer) eps() float64 {
	if o.Eps == 0 {
		return defaultEps
	}
	return o.Eps
}
