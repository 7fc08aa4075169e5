package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

// Trainer applies optimizer steps, each exactly once.
//
// A step is a pure function of (weights, optimizer state, batch), and the batch is durable before the step runs. The state
// in memory is a cache: a trainer that lost it loads the newest checkpoint and replays the batches since. A request for a
// step that is recorded returns the record; for the step after the held one it runs; anything else reloads and replays.
type Trainer struct {
	Runs  *Runs
	Store store.Store
	Owner string // this process, for the lease
	// Faults is told of the named moments of a step: before and after it is applied, and before an activity completes.
	Faults store.Faults
	// Ranks share the steps of a training run; nil: this process computes all of them.
	Ranks Ranks

	mu   sync.Mutex
	held map[string]*holding // by run
}

// Ranks are further processes that compute a step together with this one.
type Ranks interface {
	// Lead shares s out over a new group of processes of a name. end ends them; s is of no more use then.
	Lead(ctx context.Context, s *train.State, name string) (end func(), err error)
}

// holding is what a trainer keeps of one run between steps.
type holding struct {
	mu        sync.Mutex // one step of a run at a time; also orders timed-out attempts that still run
	stage     string
	epoch     int64 // of the lease under which the state was loaded
	state     *train.State
	end       func()           // of the ranks that share the state; nil without
	reference *reference       // the model that a KL weight holds the policy to; nil without
	alone     bool             // the state is wanted whole, for something else than steps
	solutions solutions        // what the steps of an iteration of STaR draw from
	snapshots map[int64][]byte // states that await their checkpoint, encoded, by step
}

// drop forgets the state and ends its ranks.
func (h *holding) drop() {
	if h.end != nil {
		h.end()
	}
	h.state, h.end = nil, nil
}

// take holds a state that was just loaded, shared out over the trainer's ranks.
func (t *Trainer) take(ctx context.Context, h *holding, s *train.State, name string) error {
	h.drop()
	if t.Ranks != nil && !h.alone {
		end, err := t.Ranks.Lead(ctx, s, name)
		if err != nil {
			return fmt.Errorf("ranks of %s: %w", name, err)
		}
		h.end = end
	}
	h.state = s
	return nil
}

// holding returns the run's slot, locked.
func (t *Trainer) lock(run string) *holding {
	t.mu.Lock()
	if t.held == nil {
		t.held = map[string]*holding{}
	}
	h := t.held[run]
	if h == nil {
		h = &holding{snapshots: map[int64][]byte{}}
		t.held[run] = h
	}
	t.mu.Unlock()
	h.mu.Lock()
	return h
}

// TrainStep applies the step in.Step, or returns what it gave when it was applied before.
func (t *Trainer) TrainStep(ctx context.Context, in TrainInput) (TrainResult, error) {
	ctx, progress, stop := beat(ctx)
	defer stop()
	rec, err := t.Runs.Recipe(ctx, in.Run)
	if err != nil {
		return TrainResult{}, err
	}
	h := t.lock(in.Run)
	defer h.mu.Unlock()
	if out, done, err := t.recorded(ctx, in); done || err != nil {
		return out, err
	}
	if err := t.reach(ctx, rec, h, in, progress); err != nil {
		return TrainResult{}, err
	}
	begin := time.Now()
	out, err := t.apply(ctx, rec, h, in, false)
	if err != nil {
		h.drop() // what the failed attempt left behind is not to be trusted
		return out, err
	}
	in.Timings.Train = time.Since(begin).Seconds()
	if err := t.recordTimings(ctx, in); err != nil {
		return out, err
	}
	progress.step()
	t.Faults.Point("before-complete", out.Weights.Version)
	return out, nil
}

// recorded returns the result of a step that was applied and published before.
func (t *Trainer) recorded(ctx context.Context, in TrainInput) (TrainResult, bool, error) {
	m, err := readJSON[StepMetrics](ctx, t.Store, store.MetricsKey(in.Run, in.Stage, in.Iteration, in.Update))
	if errors.Is(err, store.ErrNotFound) {
		return TrainResult{}, false, nil
	}
	if err != nil {
		return TrainResult{}, false, err
	}
	if m.Step != in.Step {
		return TrainResult{}, false, fmt.Errorf("round %d of %s/%s is recorded as step %d, asked for as step %d", in.Iteration, in.Run, in.Stage, m.Step, in.Step)
	}
	w := Weights{Stage: in.Stage, Version: versionOf(in.Stage, in.Step), Digest: m.WeightsDigest}
	return TrainResult{Weights: w, Metrics: m}, true, nil
}

// apply runs one step on the held state and records it. A replayed step must match its record.
func (t *Trainer) apply(ctx context.Context, rec Recipe, h *holding, in TrainInput, replay bool) (TrainResult, error) {
	chosen, err := t.chosen(ctx, rec, h, in)
	if err != nil {
		return TrainResult{}, err
	}
	if err := t.fence(ctx, in.Run, in.Stage, h.epoch); err != nil {
		return TrainResult{}, err
	}
	t.Faults.Point("before-apply", versionOf(in.Stage, in.Step))
	if err := t.audit(ctx, in.Run, in.Stage, in.Step, h.state.AppliedStep, replay); err != nil {
		return TrainResult{}, err
	}
	alg, err := rec.RL.Parameters()
	if err != nil {
		return TrainResult{}, InputError(err)
	}
	if err := t.addReference(ctx, alg, h, in, &chosen.Batch); err != nil {
		return TrainResult{}, err
	}
	m, err := train.Step(ctx, h.state, chosen.Batch, in.Step, objective(alg), optimizer(rec, in.Stage))
	if err != nil {
		return TrainResult{}, fmt.Errorf("step %d of %s/%s: %w", in.Step, in.Run, in.Stage, err)
	}
	t.Faults.Point("after-apply", versionOf(in.Stage, in.Step))
	out := TrainResult{
		Weights: Weights{Stage: in.Stage, Version: versionOf(in.Stage, in.Step), Digest: h.state.WeightsDigest()},
		Metrics: chosen.metrics(in, m),
	}
	out.Metrics.WeightsDigest = out.Weights.Digest
	if replay {
		return out, t.record(ctx, in, out.Metrics, true)
	}
	if err := t.snapshot(ctx, rec, h, in.Step); err != nil {
		return out, err
	}
	if chosen.publishes(in.Update) {
		if err := t.publish(ctx, in.Run, out.Weights, h.state.Model); err != nil {
			return out, err
		}
	}
	return out, t.record(ctx, in, out.Metrics, false)
}

// record writes the metrics of a step, or compares them with what was recorded before. It is the last thing that a step
// leaves, so a replay only compares: the record of a step that was never finished would hide that.
func (t *Trainer) record(ctx context.Context, in TrainInput, m StepMetrics, replay bool) error {
	body, err := encodeIndented(m)
	if err != nil {
		return fmt.Errorf("metrics of step %d: %w", in.Step, err)
	}
	key := store.MetricsKey(in.Run, in.Stage, in.Iteration, in.Update)
	var winner []byte
	if replay {
		winner, _, err = t.Store.Get(ctx, key)
	} else {
		winner, _, err = store.PutOnce(ctx, t.Store, key, body)
	}
	if err == nil && string(winner) != string(body) {
		return numericsError(fmt.Sprintf("step %d as %s", in.Step, body), fmt.Sprintf("%s as %s", key, winner))
	}
	return err
}

// recordTimings writes what the round and the step took, beside everything that is compared.
func (t *Trainer) recordTimings(ctx context.Context, in TrainInput) error {
	body, err := encodeIndented(in.Timings)
	if err != nil {
		return fmt.Errorf("timings of step %d: %w", in.Step, err)
	}
	_, err = t.Store.Put(ctx, store.TimingsKey(in.Run, in.Stage, in.Iteration, in.Update), body, store.PutOptions{})
	return err
}

// snapshot keeps the encoded state of a step that is due for a checkpoint.
func (t *Trainer) snapshot(ctx context.Context, rec Recipe, h *holding, step int64) error {
	if step%int64(rec.Checkpoint.Every) != 0 && !lastOfStage(rec, step) {
		return nil
	}
	body, err := encodeState(ctx, h.state)
	if err == nil {
		h.snapshots[step] = body
	}
	return err
}

func lastOfStage(rec Recipe, step int64) bool {
	for i := range rec.Stages {
		if step == int64(rec.FirstStep(i+1)) {
			return true
		}
	}
	return false
}

// audit records an application before it happens, with the step that its input state had already applied.
func (t *Trainer) audit(ctx context.Context, run, stage string, step, input int64, replay bool) error {
	return store.AppendAudit(ctx, t.Store, run, store.Event{
		Applied: &store.Applied{Run: run, Stage: stage, Step: step, InputAppliedStep: input, Replay: replay},
	})
}

// versionOf names the weights of a stage after a step.
func versionOf(stage string, step int64) string { return fmt.Sprintf("%s-%06d", stage, step) }

// encodeState is a training state as one safetensors file.
func encodeState(ctx context.Context, s *train.State) ([]byte, error) {
	tensors, err := s.Tensors(ctx)
	if err != nil {
		return nil, err
	}
	return model.EncodeSafetensors(tensors, map[string]string{"applied_step": fmt.Sprint(s.AppliedStep)})
}
