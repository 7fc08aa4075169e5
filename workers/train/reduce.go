package train

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/restar-rl/restar/workers/model"
)

// Plan says how a step is computed. It changes no bit of any result.
type Plan struct {
	Workers     int // subtrees computed at once, which share the processors: 1, 2, 4 or 8; 0 takes 1, as a pass is parallel in itself
	MicroTokens int // tokens of one forward and backward pass, which bound the memory for activations; 0 takes 2048
	// Recompute keeps only the layers' inputs of a pass and computes the other activations again: a third more work, and less memory
	// (model.Workspace.Recompute).
	Recompute bool
}

// defaultMicroTokens is where longer passes gain no more speed on a CPU: 512 to 4096 differ by a few per cent.
const defaultMicroTokens = 2048

func (p Plan) withDefaults() (Plan, error) {
	if p.MicroTokens == 0 {
		p.MicroTokens = defaultMicroTokens
	}
	if p.Workers == 0 {
		p.Workers = 1
	}
	if p.MicroTokens < 0 || p.Workers < 0 || p.Workers > Leaves || Leaves%p.Workers != 0 {
		return p, fmt.Errorf("train: plan %+v: want a positive MicroTokens, and Workers that divide %d", p, Leaves)
	}
	return p, nil
}

// part is the gradient and the sums of a subtree. The gradient of leaves without sequences is nil: a zero that nobody has to add.
type part struct {
	gradient *model.Gradient
	sums     sums
}

// reduction computes the gradient of a divided batch.
type reduction struct {
	state  *State
	leaves [Leaves]leaf
	obj    Objective
	plan   Plan
}

func (s *State) reduce(ctx context.Context, leaves [Leaves]leaf, obj Objective) (part, error) {
	plan, err := s.Plan.withDefaults()
	if err != nil {
		return part{}, err
	}
	r := &reduction{state: s, leaves: leaves, obj: obj, plan: plan}
	if s.ranks == nil {
		return r.tree(ctx, 0, Leaves, plan.Workers)
	}
	from, to := s.ranks.leaves()
	p, err := r.tree(ctx, from, to, min(plan.Workers, to-from))
	if err != nil {
		return p, err
	}
	if p.gradient == nil {
		p.gradient = absent(s.scratch.gradient(s.Model))
	}
	p.sums, err = s.ranks.combine(ctx, p)
	return p, err
}

// tree returns the sum over leaves [from, to): left half plus right half. With more than one worker the halves run at once.
func (r *reduction) tree(ctx context.Context, from, to, workers int) (part, error) {
	if to-from == 1 {
		return r.leaf(ctx, r.leaves[from])
	}
	mid := (from + to) / 2
	var left, right part
	var leftErr, rightErr error
	if workers > 1 {
		var wg sync.WaitGroup
		wg.Go(func() { left, leftErr = r.tree(ctx, from, mid, workers/2) })
		right, rightErr = r.tree(ctx, mid, to, workers/2)
		wg.Wait()
	} else if left, leftErr = r.tree(ctx, from, mid, 1); leftErr == nil {
		right, rightErr = r.tree(ctx, mid, to, 1)
	}
	if err := errors.Join(leftErr, rightErr); err != nil {
		r.state.scratch.put(left.gradient)
		r.state.scratch.put(right.gradient)
		return part{}, err
	}
	total := part{gradient: left.gradient, sums: left.sums.join(right.sums)}
	switch {
	case left.gradient == nil:
		total.gradient = right.gradient
	case right.gradient != nil:
		left.gradient.Add(right.gradient)
		r.state.scratch.put(right.gradient)
	}
	return total, nil
}

// leaf accumulates one leaf, micro-batch after micro-batch.
func (r *reduction) leaf(ctx context.Context, l leaf) (part, error) {
	if len(l) == 0 {
		return part{}, nil
	}
	p := part{gradient: r.state.scratch.gradient(r.state.Model)}
	ws := r.state.scratch.workspace()
	defer r.state.scratch.putWorkspace(ws)
	ws.Threads, ws.Recompute = max(1, runtime.GOMAXPROCS(0)/r.plan.Workers), r.plan.Recompute
	for _, micro := range l.micro(r.plan.MicroTokens) {
		coef := func(logp, entropy []float32) ([]float32, error) {
			return micro.coefficients(r.obj, &p.sums, logp, entropy), nil
		}
		if err := r.state.Model.Backward(ctx, ws, micro.pack(), coef, p.gradient); err != nil {
			r.state.scratch.put(p.gradient)
			return part{}, err
		}
	}
	return p, nil
}

// scratch keeps gradients and workspaces for the next leaf or step.
type scratch struct {
	mu         sync.Mutex
	gradients  []*model.Gradient
	workspaces []*model.Workspace
}

// gradient returns a zero gradient.
func (s *scratch) gradient(m *model.Model) *model.Gradient {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.gradients)
	if n == 0 {
		return model.NewGradient(m)
	}
	g := s.gradients[n-1]
	s.gradients = s.gradients[:n-1]
	g.Zero()
	return g
}

func (s *scratch) put(g *model.Gradient) {
	if g == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gradients = append(s.gradients, g)
}

func (s *scratch) workspace() *model.Workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.workspaces)
	if n == 0 {
		return model.NewWorkspace()
	}
	ws := s.workspaces[n-1]
	s.workspaces = s.workspaces[:n-1]
	return ws
}

func (s *scratch) putWorkspace(ws *model.Workspace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workspaces = append(s.workspaces, ws)
}
