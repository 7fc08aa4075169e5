package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/rl"
)

func TestTrap09PackingWorkersAndOrderChangeNoBit(t *testing.T) {
	inEveryShapeAndPrecision(t, packingWorkersAndOrder)
}

func packingWorkersAndOrder(t *testing.T, shape maker) {
	reference := shape(t, 1)
	b := someBatch(t, reference, 21, 1)
	reversed := Batch{slices.Clone(b.Sequences)}
	slices.Reverse(reversed.Sequences)
	var want []model.Tensor
	var metrics Metrics
	for _, plan := range []Plan{{Workers: 1, MicroTokens: 1 << 30}, {MicroTokens: 64}, {MicroTokens: 256, Recompute: true}, {MicroTokens: 1}, {Workers: 2, MicroTokens: 256},
		{Workers: 4, MicroTokens: 64, Recompute: true}, {Workers: 8, MicroTokens: 100}, {}} {
		for _, batch := range []Batch{b, reversed} {
			s := NewState(shape(t, 1))
			s.Plan = plan
			var m Metrics
			for step := range int64(2) {
				var err error
				if m, err = Step(t.Context(), s, batch, step+1, testObjective(), testOptimizer()); err != nil {
					t.Fatal(err)
				}
			}
			if want == nil {
				want, metrics = bits(s), m
			}
			if name := differ(want, bits(s)); name != "" || m != metrics {
				t.Errorf("plan %+v: %q differs from one pass over each leaf; metrics %+v, want %+v", plan, name, m, metrics)
			}
		}
	}
}

// scalarLoss is the loss of Objective's comment, token by token, in float64.
func scalarLoss(t *testing.T, m *model.Model, ws *model.Workspace, b Batch, obj Objective) float64 {
	t.Helper()
	total, tokens := 0.0, 0
	var all [][]int32
	for _, s := range b.Sequences {
		tokens += s.sampled()
		all = append(all, s.IDs)
	}
	rest, _, err := m.LogProbs(t.Context(), ws, model.Pack(all...))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range b.Sequences {
		var logp []float32
		logp, rest = rest[:len(s.IDs)], rest[len(s.IDs):]
		sum := 0.0
		for i, k := range s.Mask {
			if k == 0 {
				continue
			}
			if obj.Kind == SFT {
				sum += float64(logp[i])
				continue
			}
			sum += scalarTerm(s, obj, logp, i)
		}
		if s.sampled() == 0 {
			continue // it has no mean, and still counts in the number of sequences
		}
		if obj.Norm == rl.SequenceMean {
			total -= sum / float64(s.sampled()) / float64(len(b.Sequences))
		} else {
			total -= sum / float64(tokens)
		}
	}
	return total
}

// sequenceRatio is the geometric mean of a sequence's ratios.
func sequenceRatio(s Sequence, logp []float32) float64 {
	r := 1.0
	for t, k := range s.Mask {
		if k == 1 {
			r *= math.Pow(math.Exp(float64(logp[t])-float64(s.LogProbs[t])), 1/float64(s.sampled()))
		}
	}
	return r
}

// scalarTerm is what token i of a sequence adds, before the denominator.
func scalarTerm(s Sequence, obj Objective, logp []float32, i int) float64 {
	r, a := math.Exp(float64(logp[i])-float64(s.LogProbs[i])), float64(s.Advantage)
	if s.Advantages != nil {
		a = float64(s.Advantages[i])
	}
	clip := func(r float64) float64 { return math.Min(math.Max(r, 1-obj.Clip.Low), 1+obj.Clip.High) }
	if obj.Ratio == rl.SequenceRatio {
		r = sequenceRatio(s, logp)
	}
	value := math.Min(r*a, clip(r)*a)
	if obj.Ratio == rl.WeightRatio {
		value = clip(r) * a * float64(logp[i])
	}
	if obj.Importance > 0 {
		value *= math.Min(math.Exp(float64(s.LogProbs[i])-float64(s.EngineLogProbs[i])), obj.Importance)
	}
	if obj.KLBeta > 0 {
		q := math.Exp(float64(s.RefLogProbs[i]) - float64(logp[i]))
		value -= obj.KLBeta * (q - math.Log(q) - 1)
	}
	return value
}

// awayFromEdges moves the log-ratios of tokens near an edge of the clip range, where the loss has no slope, to margin on their own side.
func awayFromEdges(t *testing.T, m *model.Model, b Batch, clip rl.Clip) Batch {
	t.Helper()
	const margin = 0.1 // no step of checkSlope moves a log-prob as far
	for _, s := range b.Sequences {
		logp, _, err := m.LogProbs(t.Context(), nil, model.Pack(s.IDs))
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range s.Mask {
			for _, edge := range []float64{math.Log(1 - clip.Low), math.Log(1 + clip.High)} {
				if d := float64(logp[i]-s.LogProbs[i]) - edge; k == 1 && math.Abs(d) < margin {
					s.LogProbs[i] = logp[i] - float32(edge+math.Copysign(margin, d))
				}
			}
		}
	}
	return b
}

func TestTheLossIsTheScalarReferencesAndTheGradientItsSlope(t *testing.T) {
	inEveryShape(t, lossAndSlope)
}

func lossAndSlope(t *testing.T, shape maker) {
	m, ws := shape(t, 2), model.NewWorkspace()
	b := withOptional(awayFromEdges(t, m, someBatch(t, m, 9, 2), testObjective().Clip))
	alone := Batch{slices.Clone(b.Sequences)} // with one advantage a sequence, as the gradient through a sequence's ratio has it
	for i := range alone.Sequences {
		alone.Sequences[i].Advantages = nil
	}
	wide := rl.Clip{Low: 1, High: 1e3}
	for _, obj := range []Objective{
		{Kind: SFT}, testObjective(), {Kind: PolicyGradient, Clip: wide},
		{Kind: PolicyGradient, Clip: wide, Norm: rl.SequenceMean},
		{Kind: PolicyGradient, Clip: wide, KLBeta: 0.5},
		{Kind: PolicyGradient, Clip: wide, Importance: 1.2},
		{Kind: PolicyGradient, Clip: wide, Ratio: rl.SequenceRatio, Norm: rl.SequenceMean},
	} {
		obj, b := obj.withDefaults(), b
		if obj.Ratio == rl.SequenceRatio {
			b = alone
		}
		s := NewState(m)
		work, err := divide(b, obj)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.reduce(t.Context(), work, obj)
		if err != nil {
			t.Fatal(err)
		}
		if want := scalarLoss(t, m, ws, b, obj); !(math.Abs(got.sums.loss-want) <= 1e-6) {
			t.Errorf("%+v: loss %v, want %v", obj, got.sums.loss, want)
		}
		if clips := obj.Kind == PolicyGradient && obj.Clip != wide; clips != (got.sums.clipLow > 0 && got.sums.clipHigh > 0) {
			t.Errorf("%+v: %d tokens clipped below and %d above, want some of both: %v", obj, got.sums.clipLow, got.sums.clipHigh, clips)
		}
		for i, g := range got.gradient.Tensors() {
			checkSlope(t, m, ws, b, obj, i, g)
		}
	}
}

// The gradient of CISPO is not the slope of its loss: the clipped ratio in it is a constant. Nor is GSPO's where tokens have advantages of
// their own: a token's scales its own log-prob only (GSPO-token, section 4.3 of arXiv 2507.18071).
func TestTheGradientOfWeightedAndOfSequenceRatiosTakesTheRatioAsAConstant(t *testing.T) {
	m := tinyModel(t, 2)
	b := withOptional(someBatch(t, m, 9, 2))
	for _, obj := range []Objective{
		{Kind: PolicyGradient, Clip: rl.Clip{Low: 0.5, High: 0.28}, Ratio: rl.WeightRatio},
		{Kind: PolicyGradient, Clip: rl.Clip{Low: 1, High: 1e3}, Ratio: rl.SequenceRatio},
	} {
		obj := obj.withDefaults()
		for i, s := range b.Sequences {
			logp, entropy, err := m.LogProbs(t.Context(), nil, model.Pack(s.IDs))
			if err != nil {
				t.Fatal(err)
			}
			var a sums
			coef := make([]float32, len(s.IDs))
			obj.coefficients(&a, item{s, 0.125}, logp, entropy, coef)
			sum := 0.0
			for k, m := range s.Mask {
				if m == 0 {
					continue
				}
				sum += scalarTerm(s, obj, logp, k)
				r := math.Exp(float64(logp[k]) - float64(s.LogProbs[k]))
				if obj.Ratio == rl.SequenceRatio {
					r = sequenceRatio(s, logp)
				}
				want := -0.125 * math.Min(math.Max(r, 1-obj.Clip.Low), 1+obj.Clip.High) * float64(s.Advantages[k])
				if !(math.Abs(float64(coef[k])-want) <= 1e-7) {
					t.Errorf("%s, sequence %d token %d: coefficient %v, want %v", obj.Ratio, i, k, coef[k], want)
				}
			}
			if !(math.Abs(a.loss+0.125*sum) <= 1e-9*(1+math.Abs(sum))) {
				t.Errorf("%s, sequence %d: loss %v, want %v", obj.Ratio, i, a.loss, -0.125*sum)
			}
		}
	}
}

func TestAnObjectiveRefusesABatchThatLacksItsLogProbs(t *testing.T) {
	s := NewState(tinyModel(t, 2))
	for name, obj := range map[string]Objective{
		"reference": {Kind: PolicyGradient, KLBeta: 0.04}, "engine": {Kind: PolicyGradient, Importance: 2},
	} {
		_, err := Step(t.Context(), s, someBatch(t, s.Model, 2, 1), 1, obj, testOptimizer())
		if !errors.Is(err, ErrBatch) || !strings.Contains(err.Error(), name+" log-probs") {
			t.Errorf("without %s log-probs: %v", name, err)
		}
	}
}

// checkSlope compares the gradient of one tensor with central differences of the scalar loss: along the gradient, along random signs of
// all elements and along a few single elements, which do not depend on the gradient as the first does. The tolerance is for curvature and
// for the rounding of log-probs to float32.
func checkSlope(t *testing.T, m *model.Model, ws *model.Workspace, b Batch, obj Objective, tensor int, g model.Tensor) {
	t.Helper()
	norm := 0.0
	for _, x := range g.Data {
		norm += float64(x) * float64(x)
	}
	norm = math.Sqrt(norm)
	check := func(along string, per float64, step func(i int) float64) {
		t.Helper()
		got, want := slope(t, m, ws, b, obj, tensor, g, step)
		got, want = got/per, want/per
		if !(math.Abs(got-want) <= 0.005*norm+1e-7/(2*per)) {
			t.Errorf("%+v, %s: slope along %s is %v, want %v (the gradient's norm is %v)", obj, g.Name, along, got, want, norm)
		}
	}
	const along, each, one = 2e-3, 1e-3, 1e-2 // the lengths of the whole step, of that of each element and of that of the only one
	check("the gradient", along, func(i int) float64 { return along * float64(g.Data[i]) / norm })
	at := philox.Address{Purpose: philox.Select, Ordinal: 1000 + tensor}
	check("random signs", each, func(i int) float64 { return each * float64(2*rng.IntN(at.WithTurn(1).WithToken(i), 2)-1) })
	for draw := range 2 {
		chosen := rng.IntN(at.WithToken(draw), len(g.Data))
		check(fmt.Sprint("element ", chosen), one, func(i int) float64 {
			if i != chosen {
				return 0
			}
			return one
		})
	}
}

// slope is half the difference of the loss between a step there and one back, and what the gradient says of the same steps.
func slope(t *testing.T, m *model.Model, ws *model.Workspace, b Batch, obj Objective, tensor int, g model.Tensor, step func(i int) float64) (got, want float64) {
	t.Helper()
	data := m.Params()[tensor].Data
	saved := slices.Clone(data)
	for _, sign := range []float64{1, -1} {
		for i, x := range saved {
			data[i] = float32(float64(x) + sign*step(i))
			want += sign * float64(g.Data[i]) * float64(data[i]) / 2
		}
		m.WeightsChanged()
		got += sign * scalarLoss(t, m, ws, b, obj) / 2
	}
	copy(data, saved)
	m.WeightsChanged()
	return got, want
}

func TestOneStepIsAdamWOnTheClippedGradient(t *testing.T) {
	inEveryShape(t, oneStep)
}

func oneStep(t *testing.T, shape maker) {
	s := NewState(shape(t, 3))
	b, obj, opt := someBatch(t, s.Model, 5, 3), testObjective(), testOptimizer()
	opt.ClipNorm = 0.05
	work, _ := divide(b, obj)
	p, err := s.reduce(t.Context(), work, obj)
	if err != nil {
		t.Fatal(err)
	}
	before, norm := bits(s), 0.0
	for _, g := range p.gradient.Tensors() {
		for _, x := range g.Data {
			norm += float64(x) * float64(x)
		}
	}
	norm = math.Sqrt(norm)
	m, err := Step(t.Context(), s, b, 1, obj, opt)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(m.GradNorm-norm) > 1e-9*norm || norm < opt.ClipNorm {
		t.Fatalf("gradient norm is %v, want %v and more than the clip %v", m.GradNorm, norm, opt.ClipNorm)
	}
	for i, g := range p.gradient.Tensors() {
		for j, x := range g.Data {
			c := float64(x) * opt.ClipNorm / (norm + 1e-6)
			w := float64(before[i].Data[j]) * (1 - opt.LR*opt.WeightDecay)
			w -= opt.LR * c / (math.Abs(c) + 1e-8) // m/(1-b1) = c and v/(1-b2) = c^2 at the first update
			if got := float64(s.Model.Params()[i].Data[j]); math.Abs(got-w) > 2e-6+0.01*opt.LR*1e-8/(math.Abs(c)+1e-12) {
				t.Fatalf("%s[%d] is %v after the step, want %v (gradient %v)", g.Name, j, got, w, c)
			}
		}
	}
}

func TestAResumedRunHasTheBitsOfAnUndisturbedOne(t *testing.T) {
	inEveryShape(t, resumedRun)
}

func resumedRun(t *testing.T, shape maker) {
	const steps = 5
	whole := NewState(shape(t, 4))
	var after [][]model.Tensor
	var batches []Batch
	var metrics []Metrics
	opt := testOptimizer()
	opt.WarmupSteps = 3
	for i := range steps {
		batches = append(batches, someBatch(t, whole.Model, 4, 10+i))
		m, err := Step(t.Context(), whole, batches[i], int64(i+1), testObjective(), opt)
		if err != nil {
			t.Fatal(err)
		}
		after, metrics = append(after, bits(whole)), append(metrics, m)
	}
	for from := range steps {
		raw, err := model.EncodeSafetensors(after[from], nil)
		if err != nil {
			t.Fatal(err)
		}
		ts, _, err := model.DecodeSafetensors(raw)
		if err != nil {
			t.Fatal(err)
		}
		s := NewState(shape(t, 99))
		if err := s.LoadTensors(ts); err != nil {
			t.Fatal(err)
		}
		for i := from + 1; i < steps; i++ {
			m, err := Step(t.Context(), s, batches[i], int64(i+1), testObjective(), opt)
			if err != nil {
				t.Fatal(err)
			}
			if m != metrics[i] {
				t.Errorf("resumed after step %d: metrics of step %d are %+v, want %+v", from+1, i+1, m, metrics[i])
			}
		}
		if name := differ(after[steps-1], bits(s)); name != "" || s.WeightsDigest() != whole.WeightsDigest() {
			t.Errorf("resumed after step %d: %q differs", from+1, name)
		}
	}
}

func TestAStepIsAppliedOnceAndInOrder(t *testing.T) {
	s := NewState(tinyModel(t, 5))
	b := someBatch(t, s.Model, 3, 5)
	for _, c := range []struct {
		step int64
		ok   bool
	}{{0, false}, {2, false}, {1, true}, {1, false}, {2, true}} {
		digest := s.WeightsDigest()
		_, err := Step(t.Context(), s, b, c.step, testObjective(), testOptimizer())
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrStepOrder) {
			t.Errorf("step %d after %d: %v", c.step, s.AppliedStep, err)
		}
		if (digest != s.WeightsDigest()) != c.ok {
			t.Errorf("step %d (accepted %v): weights changed is %v", c.step, c.ok, digest != s.WeightsDigest())
		}
	}
}

func TestTrap11AGradientThatIsNotFiniteSkipsTheStepAndSaysSo(t *testing.T) {
	for reason, spoil := range map[string]func(*Batch, *Optimizer){
		"gradient norm is": func(b *Batch, _ *Optimizer) {
			one := b.Sequences[0]
			one.Advantage, one.Mask, one.LogProbs = -3.4e38, make([]uint8, len(one.IDs)), make([]float32, len(one.IDs))
			one.Mask[1], one.LogProbs[1] = 1, -5
			b.Sequences = []Sequence{one}
		},
		"exceeds": func(b *Batch, o *Optimizer) { b.Sequences[0].Advantage = -3e25 },
	} {
		s := NewState(tinyModel(t, 6))
		good := someBatch(t, s.Model, 3, 6)
		if _, err := Step(t.Context(), s, good, 1, testObjective(), testOptimizer()); err != nil {
			t.Fatal(err)
		}
		bad, opt, before := Batch{slices.Clone(good.Sequences)}, testOptimizer(), bits(s)
		spoil(&bad, &opt)
		m, err := Step(t.Context(), s, bad, 2, testObjective(), opt)
		if err != nil || !strings.Contains(m.Skipped, reason) {
			t.Fatalf("step with an unusable gradient: %+v, %v, want it skipped for %q", m, err, reason)
		}
		for _, v := range []float64{m.Loss, m.GradNorm, m.RatioMax, m.KL, m.Entropy, m.ClipFracLow, m.ClipFracHigh} {
			if !isFinite(v) {
				t.Errorf("metrics %+v hold a value that JSON cannot", m)
			}
		}
		counters := len(before) - 1
		if name := differ(before[:counters], bits(s)[:counters]); name != "" || s.AppliedStep != 2 || s.Updates != 1 {
			t.Errorf("%s: skipped step changed %q, applied step %d, updates %d, want none, 2 and 1", reason, name, s.AppliedStep, s.Updates)
		}
	}
}

func TestACancelledStepLeavesTheState(t *testing.T) {
	s := NewState(tinyModel(t, 7))
	b, before := someBatch(t, s.Model, 3, 7), bits(s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Step(ctx, s, b, 1, testObjective(), testOptimizer()); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled step returned %v", err)
	}
	if name := differ(before, bits(s)); name != "" {
		t.Errorf("cancelled step changed %q", name)
	}
	if _, err := Step(t.Context(), s, b, 1, testObjective(), testOptimizer()); err != nil {
		t.Errorf("the same step again: %v", err)
	}
}

func TestSFTOverfitsASmallSet(t *testing.T) {
	s := NewState(tinyModel(t, 8))
	b := someBatch(t, s.Model, 4, 8)
	opt := Optimizer{LR: 0.02, Beta1: 0.9, Beta2: 0.99, ClipNorm: 1, Schedule: Cosine, WarmupSteps: 10, TotalSteps: 150}
	var first, last Metrics
	for step := range int64(opt.TotalSteps) {
		m, err := Step(t.Context(), s, b, step+1, Objective{Kind: SFT}, opt)
		if err != nil {
			t.Fatal(err)
		}
		if step == 0 {
			first = m
		}
		last = m
	}
	if first.Loss < 3 || last.Loss > 0.2 {
		t.Errorf("loss went from %v to %v, want from more than 3 to less than 0.2", first.Loss, last.Loss)
	}
}

func TestTheOptimizerRestartsWithoutForgettingTheStep(t *testing.T) {
	s := NewState(tinyModel(t, 9))
	b := someBatch(t, s.Model, 3, 9)
	for step := range int64(3) {
		if step == 2 {
			s.ResetOptimizer()
		}
		if _, err := Step(t.Context(), s, b, step+1, testObjective(), testOptimizer()); err != nil {
			t.Fatal(err)
		}
	}
	if s.AppliedStep != 3 || s.Updates != 1 {
		t.Errorf("applied step %d and updates %d, want 3 and 1", s.AppliedStep, s.Updates)
	}
}

func TestBadPlansObjectivesAndOptimizersAreNamed(t *testing.T) {
	for want, change := range map[string]func(*State, *Objective, *Optimizer){
		"Workers":      func(s *State, _ *Objective, _ *Optimizer) { s.Plan.Workers = 3 },
		"MicroTokens":  func(s *State, _ *Objective, _ *Optimizer) { s.Plan.MicroTokens = -1 },
		"kind":         func(_ *State, o *Objective, _ *Optimizer) { o.Kind = "dpo" },
		"clip_low":     func(_ *State, o *Objective, _ *Optimizer) { o.Clip.Low = 2 },
		"clip_high":    func(_ *State, o *Objective, _ *Optimizer) { o.Clip.High = math.NaN() },
		"dual_clip":    func(_ *State, o *Objective, _ *Optimizer) { o.Clip.Dual = 0.5 },
		"loss norm":    func(_ *State, o *Objective, _ *Optimizer) { o.Norm = "sum" },
		"LR":           func(_ *State, _ *Objective, o *Optimizer) { o.LR = math.Inf(1) },
		"Beta1, Beta2": func(_ *State, _ *Objective, o *Optimizer) { o.Beta2 = 1 },
		"WarmupSteps":  func(_ *State, _ *Objective, o *Optimizer) { o.WarmupSteps = -1 },
		"TotalSteps":   func(_ *State, _ *Objective, o *Optimizer) { o.Schedule = Cosine },
		"Schedule":     func(_ *State, _ *Objective, o *Optimizer) { o.Schedule = "step" },
	} {
		s, obj, opt := NewState(tinyModel(t, 9)), testObjective(), testOptimizer()
		b := someBatch(t, s.Model, 2, 9)
		change(s, &obj, &opt)
		if _, err := Step(t.Context(), s, b, 1, obj, opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("refusal is %v, want one that names %s", err, want)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	m, err := model.New(model.Config{VocabSize: 1024, HiddenSize: 128, IntermediateSize: 384, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 32,
		MaxPosition: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.05}, 1)
	if err != nil {
		b.Fatal(err)
	}
	var batch Batch
	tokens := 0
	for i := range 64 {
		n := 400 + i*3
		s := Sequence{Ordinal: i, IDs: make([]int32, n), Mask: make([]uint8, n), LogProbs: make([]float32, n), Advantage: 1}
		for t := 1; t < n; t++ {
			s.IDs[t], s.Mask[t], s.LogProbs[t] = int32((t*7+i)%1024), 1, -7
		}
		batch.Sequences = append(batch.Sequences, s)
		tokens += n
	}
	for _, plan := range []Plan{{MicroTokens: 4096}, {MicroTokens: 1024}, {MicroTokens: 1024, Recompute: true}, {Workers: 2, MicroTokens: 1024}} {
		b.Run(fmt.Sprintf("%+v", plan), func(b *testing.B) {
			s := NewState(m)
			s.Plan = plan
			for b.Loop() {
				if _, err := Step(b.Context(), s, batch, s.AppliedStep+1, testObjective(), testOptimizer()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
