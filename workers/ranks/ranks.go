// Package ranks runs the other processes of a data-parallel trainer on its machine: copies of its own program that follow rank 0.
//
// Invariants:
//
//   - A rank lives as long as its group: it ends when rank 0 closes the group, dies, or cannot be reached any more. It holds nothing that is
//     not in the store, so a group is never repaired; a new one begins from a checkpoint.
//   - The number of ranks changes no bit of any result (package train).
package ranks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/restar-rl/restar/workers/collective"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/train"
)

// GroupEnv tells a process that it is a rank, and of which group.
const GroupEnv = "RESTAR_RANK_GROUP"

// joinPatience bounds the start of a group: a process starts within a second, a laden machine may need many.
const joinPatience = time.Minute

// endPatience is how long a closed group's processes may take to end before they are killed.
const endPatience = 5 * time.Second

// Processes starts groups of Count ranks, this process being rank 0.
type Processes struct {
	Count   int      // 2, 4 or 8
	Command []string // program and arguments that call Follow
	Log     io.Writer
}

// Check refuses a number of ranks that a step cannot be shared by.
func (p Processes) Check() error {
	if p.Count < 1 || p.Count > train.Leaves || train.Leaves%p.Count != 0 {
		return fmt.Errorf("number of ranks is %d, want 1, 2, 4 or %d", p.Count, train.Leaves)
	}
	return nil
}

// Lead starts the other ranks and shares s out over them. end ends them; s is of no more use then.
func (p Processes) Lead(ctx context.Context, s *train.State, name string) (end func(), err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	g, err := p.start(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := s.Lead(ctx, g.group); err != nil {
		g.end()
		return nil, err
	}
	return g.end, nil
}

// running is a started group.
type running struct {
	dir   string
	group collective.Group
	stop  context.CancelFunc
	all   sync.WaitGroup
}

// start begins the processes and joins them. A process that ends before all are joined ends the attempt at once.
func (p Processes) start(ctx context.Context, name string) (*running, error) {
	dir, err := os.MkdirTemp("", "restar-ranks-")
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{dir: dir, stop: stop}
	o := collective.Options{Name: name, Addresses: make([]string, p.Count)}
	for i := range o.Addresses {
		o.Addresses[i] = "unix:" + filepath.Join(dir, fmt.Sprint("rank-", i))
	}
	joining, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i := 1; i < p.Count; i++ {
		o.Rank = i
		if err := p.spawn(life, r, o, cancel); err != nil {
			r.end()
			return nil, err
		}
	}
	o.Rank, o.Assembly = 0, joinPatience
	if r.group, err = collective.Join(joining, o); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

func (p Processes) spawn(life context.Context, r *running, o collective.Options, failed context.CancelCauseFunc) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	c := exec.CommandContext(life, p.Command[0], p.Command[1:]...)
	c.Env = append(os.Environ(), GroupEnv+"="+string(body), fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.GOMAXPROCS(0)/p.Count)))
	c.Stderr = p.Log
	if err := c.Start(); err != nil {
		return fmt.Errorf("start rank %d: %w", o.Rank, err)
	}
	r.all.Go(func() {
		if err := c.Wait(); err != nil {
			failed(fmt.Errorf("rank %d ended: %w", o.Rank, err))
		}
	})
	return nil
}

// end closes the group, waits for its processes and kills those that stay.
func (r *running) end() {
	if r.group != nil {
		_ = r.group.Close() // ends the others
		kill := time.AfterFunc(endPatience, r.stop)
		r.all.Wait()
		kill.Stop()
	}
	r.stop()
	r.all.Wait()
	_ = os.RemoveAll(r.dir)
}

// Follow is the whole work of a rank: it joins the group that the environment names and serves it. The end of the group is no error.
func Follow(ctx context.Context) error {
	var o collective.Options
	text := os.Getenv(GroupEnv)
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("%s is %q, want the group of a trainer, which starts its ranks itself: %w", GroupEnv, text, err)
	}
	o.Assembly = joinPatience
	g, err := collective.Join(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }()
	err = train.Follow(ctx, g, model.New)
	if errors.Is(err, collective.ErrEnded) {
		return nil
	}
	return err
}
