package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/restar-rl/restar/workers/collective"
	"github.com/restar-rl/restar/workers/model"
)

// ranks is a state's share in a step that several processes compute. Every rank holds all weights, computes the gradient of its 8/size
// leaves, and owns some whole tensors, whose gradient it sums, whose moments it alone holds and whose new weights it gives to
// the others (ZeRO stage 1, Rajbhandari et al. 2020, §5.1). A tensor has one owner, so that its sum of squares has the bits of one
// process.
type ranks struct {
	group collective.Group
	owner []int // rank of each tensor, in the order of Model.Params
}

// command is what rank 0 tells the others to do next. A batch follows a step as a message of its own.
type command struct {
	Do        string          `json:"do"`
	Config    model.Config    `json:"config,omitzero"`
	Precision model.Precision `json:"precision,omitempty"`
	Numerics  string          `json:"numerics,omitempty"`
	Plan      Plan            `json:"plan,omitzero"`
	Applied   int64           `json:"applied,omitempty"`
	Updates   int64           `json:"updates,omitempty"`
	Step      int64           `json:"step,omitempty"`
	Objective Objective       `json:"objective,omitzero"`
	Optimizer Optimizer       `json:"optimizer,omitzero"`
}

// The commands.
const (
	doBegin  = "begin"
	doStep   = "step"
	doGather = "gather"
)

// owners deals tensors to ranks: the largest first, each to the rank with the fewest elements so far, the lower of equals.
func owners(params []model.Param, size int) []int {
	order := make([]int, len(params))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(params[b].Data), len(params[a].Data)) })
	load, owner := make([]int, size), make([]int, len(params))
	for _, i := range order {
		to := 0
		for r, l := range load {
			if l < load[to] {
				to = r
			}
		}
		owner[i] = to
		load[to] += len(params[i].Data)
	}
	return owner
}

// shards groups the vectors of tensors by owner.
func (r *ranks) shards(vectors func(i int) [][]float32) []collective.Shard {
	out := make([]collective.Shard, r.group.Size())
	for i, to := range r.owner {
		out[to] = append(out[to], vectors(i)...)
	}
	return out
}

// of gives shards the vectors of tensors.
func of(ts []model.Tensor) func(i int) [][]float32 {
	return func(i int) [][]float32 { return [][]float32{ts[i].Data} }
}

func (r *ranks) owns(i int) bool { return r.owner[i] == r.group.Rank() }

// leaves is the range of leaves that this rank computes.
func (r *ranks) leaves() (from, to int) {
	n := Leaves / r.group.Size()
	return r.group.Rank() * n, (r.group.Rank() + 1) * n
}

// tell gives a command to the other ranks.
func (r *ranks) tell(ctx context.Context, c command) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return r.group.Tell(ctx, body)
}

// Lead shares a whole state out over the ranks of a group, of which this process is rank 0; the others Follow. From then on
// Step and Tensors work on all ranks together, with the same bits as on one. An error leaves the state broken, since the ranks no longer agree:
// load it again and lead a new group.
func (s *State) Lead(ctx context.Context, g collective.Group) error {
	switch {
	case s.broken != nil:
		return s.broken
	case s.ranks != nil:
		return errors.New("train: the state is shared out over ranks already")
	case g.Size() > Leaves || Leaves%g.Size() != 0 || g.Rank() != 0:
		return fmt.Errorf("train: rank %d of %d leads, want rank 0 of a number of ranks that divides %d", g.Rank(), g.Size(), Leaves)
	case g.Size() == 1:
		return nil
	}
	r := &ranks{group: g, owner: owners(s.Model.Params(), g.Size())}
	begin := command{
		Do: doBegin, Config: s.Model.Config, Precision: s.Model.Precision(), Numerics: model.NumericsOf(s.Model.Precision()), Plan: s.Plan,
		Applied: s.AppliedStep, Updates: s.Updates,
	}
	if err := r.tell(ctx, begin); err != nil {
		return s.fail("sharing the state out", err)
	}
	if err := s.share(ctx, r); err != nil {
		return s.fail("sharing the state out", err)
	}
	for i := range s.M {
		if !r.owns(i) {
			s.M[i].Data, s.V[i].Data = nil, nil
		}
	}
	s.ranks = r
	return nil
}

// share moves weights to all ranks and moments to their owners.
func (s *State) share(ctx context.Context, r *ranks) error {
	var weights collective.Shard
	for _, p := range s.Model.Params() {
		weights = append(weights, p.Data)
	}
	return errors.Join(
		r.group.Broadcast(ctx, 0, weights),
		r.group.Scatter(ctx, 0, r.shards(of(s.M))),
		r.group.Scatter(ctx, 0, r.shards(of(s.V))))
}

// fail marks the state as broken by an error of its group.
func (s *State) fail(doing string, err error) error {
	s.broken = fmt.Errorf("train: state is broken by an error while %s over ranks, load it again: %w", doing, err)
	return s.broken
}

// NewModel makes a model whose weights are about to be replaced: model.New.
type NewModel func(cfg model.Config, seed uint64, opts ...model.Option) (*model.Model, error)

// Follow serves rank 0 until ctx or the group ends. The end of the group is the normal end of a follower, and is returned as an error
// all the same: only the caller knows whether it was expected.
func Follow(ctx context.Context, g collective.Group, newModel NewModel) error {
	var s *State
	for {
		message, err := g.Listen(ctx, 0)
		if err != nil {
			return err
		}
		var c command
		if err := json.Unmarshal(message, &c); err != nil {
			return fmt.Errorf("train: command of rank 0: %w", err)
		}
		if s == nil && c.Do != doBegin {
			return fmt.Errorf("train: command of rank 0 is %q, want %q first", c.Do, doBegin)
		}
		switch c.Do {
		case doBegin:
			s, err = follower(ctx, g, c, newModel)
		case doStep:
			err = s.followStep(ctx, c)
		case doGather:
			err = s.gather(ctx, s.M, s.V)
		default:
			err = fmt.Errorf("train: command of rank 0 is %q, want %q, %q or %q", c.Do, doBegin, doStep, doGather)
		}
		if err != nil {
			return err
		}
	}
}

func follower(ctx context.Context, g collective.Group, c command, newModel NewModel) (*State, error) {
	if mine := model.NumericsOf(c.Precision); mine != c.Numerics {
		return nil, fmt.Errorf("train: numerics of rank %d are %q, those of rank 0 %q: run all ranks on the same kind of processor", g.Rank(), mine, c.Numerics)
	}
	m, err := newModel(c.Config, 0, model.WithPrecision(c.Precision))
	if err != nil {
		return nil, err
	}
	s := &State{Model: m, Plan: c.Plan, AppliedStep: c.Applied, Updates: c.Updates}
	s.ranks = &ranks{group: g, owner: owners(m.Params(), g.Size())}
	for i, p := range m.Params() {
		t := model.Tensor{Name: p.Name, Shape: p.Shape}
		if s.ranks.owns(i) {
			t.Data = make([]float32, len(p.Data))
		}
		s.M = append(s.M, t)
		if s.ranks.owns(i) {
			t.Data = make([]float32, len(p.Data))
		}
		s.V = append(s.V, t)
	}
	if err := s.share(ctx, s.ranks); err != nil {
		return nil, err
	}
	m.WeightsChanged()
	return s, nil
}

func (s *State) followStep(ctx context.Context, c command) error {
	message, err := s.ranks.group.Listen(ctx, 0)
	if err != nil {
		return err
	}
	b, err := DecodeBatch(message)
	if err != nil {
		return err
	}
	if c.Step != s.AppliedStep+1 {
		return fmt.Errorf("%w: rank 0 asks for step %d, rank %d takes step %d", ErrStepOrder, c.Step, s.ranks.group.Rank(), s.AppliedStep+1)
	}
	work, err := divide(b, c.Objective)
	if err == nil {
		_, err = s.step(ctx, work, c.Step, c.Objective, c.Optimizer)
	}
	return err
}

// announce tells the other ranks to take a step.
func (s *State) announce(ctx context.Context, b Batch, step int64, obj Objective, opt Optimizer) error {
	body, err := EncodeBatch(b)
	if err != nil {
		return err
	}
	err = s.ranks.tell(ctx, command{Do: doStep, Step: step, Objective: obj, Optimizer: opt})
	if err == nil {
		err = s.ranks.group.Tell(ctx, body)
	}
	if err != nil {
		return s.fail("announcing a step", err)
	}
	return nil
}

// gather collects the moments at rank 0.
func (s *State) gather(ctx context.Context, m, v []model.Tensor) error {
	return errors.Join(
		s.ranks.group.Gather(ctx, 0, s.ranks.shards(of(m))),
		s.ranks.group.Gather(ctx, 0, s.ranks.shards(of(v))))
}

// moments returns all moments, from their owners where the state is shared out.
func (s *State) moments(ctx context.Context) (m, v []model.Tensor, err error) {
	if s.ranks == nil {
		return s.M, s.V, nil
	}
	m, v = slices.Clone(s.M), slices.Clone(s.V)
	for i, p := range s.Model.Params() {
		if !s.ranks.owns(i) {
			m[i].Data, v[i].Data = make([]float32, len(p.Data)), make([]float32, len(p.Data))
		}
	}
	if err = s.ranks.tell(ctx, command{Do: doGather}); err == nil {
		err = s.gather(ctx, m, v)
	}
	if err != nil {
		return nil, nil, s.fail("gathering the moments", err)
	}
	return m, v, nil
}
