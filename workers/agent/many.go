package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// Many says how trajectories are run beside each other.
type Many struct {
	InFlight int           // trajectories at once; 0 is all
	Runs     int           // of one trajectory while the infrastructure fails, each from its last recorded turn; at least 1
	Wait     time.Duration // before another run

	// OnTurn and OnEnd, if not nil, record what trajectory i comes to, each before it counts. They are called from many goroutines;
	// for one trajectory one call at a time, in order. An error of theirs ends all.
	OnTurn func(i int, r TurnRecord) error
	OnEnd  func(i int, t Trajectory) error
}

// RunAll runs the trajectories of any number of groups over one engine. None waits for another: each turn's calls go out as soon
// as it is sampled. A trajectory that the infrastructure fails is run again, and its failure ends no other. unfinished has, for
// each task, how far it came and why no further; a finished one has no error. err is one that concerns all: ctx's, or one of
// OnTurn or OnEnd.
func (a *Agent) RunAll(ctx context.Context, tasks []Task, m Many) (unfinished []Unfinished, err error) {
	if m.Runs < 1 || m.InFlight < 0 || m.Wait < 0 {
		return nil, fmt.Errorf("%d in flight, %d runs and waits of %v cannot be; want 0 or more in flight, a run, no negative wait", m.InFlight, m.Runs, m.Wait)
	}
	unfinished = make([]Unfinished, len(tasks))
	group, ctx := errgroup.WithContext(ctx)
	if m.InFlight > 0 {
		group.SetLimit(m.InFlight)
	}
	for i, task := range tasks {
		group.Go(func() error {
			var err error
			unfinished[i], err = a.insist(ctx, i, task, m)
			return err
		})
	}
	return unfinished, group.Wait()
}

// Unfinished is a trajectory that could not be brought to its end this time.
type Unfinished struct {
	Trajectory Trajectory // after its last recorded turn
	Err        error      // an *InfraError, ErrOverdue, or what is wrong with the task; nil if it is finished
}

// insist runs one trajectory until it is finished or its runs are used up.
func (a *Agent) insist(ctx context.Context, i int, task Task, m Many) (Unfinished, error) {
	var onTurn func(TurnRecord) error
	var recording error
	if m.OnTurn != nil {
		onTurn = func(r TurnRecord) error {
			recording = m.OnTurn(i, r)
			return recording
		}
	}
	for run := 1; ; run++ {
		t, err := a.Run(ctx, task, onTurn)
		switch {
		case err == nil && m.OnEnd != nil:
			return Unfinished{}, m.OnEnd(i, t)
		case err == nil:
			return Unfinished{}, nil
		case recording != nil:
			return Unfinished{}, err
		case ctx.Err() != nil:
			return Unfinished{}, errors.Join(context.Cause(ctx), err)
		case !IsInfra(err) || run >= m.Runs:
			return Unfinished{t, err}, nil
		}
		task.Resume = &t
		select {
		case <-ctx.Done():
			return Unfinished{}, errors.Join(context.Cause(ctx), err)
		case <-time.After(m.Wait):
		}
	}
}
