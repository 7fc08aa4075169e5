package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
)

// TestNoHistoryOfTheEngineReachesASample mixes whole turns with turns given up at any step, branches back to earlier ids, sessions that
// are released and used again, and swaps, in an engine that is always short of blocks.
func TestNoHistoryOfTheEngineReachesASample(t *testing.T) {
	for seed := range uint64(4) {
		f := newFake(14)
		f.gate = make(chan struct{})
		e := startFake(t, f, Options{Blocks: 14, MaxRows: 12, MaxPrefillTokens: 90})
		ctx, stop := context.WithCancel(testContext(t))
		go feed(ctx, f.gate)
		var wg sync.WaitGroup
		for n := range 24 {
			wg.Go(func() {
				if err := erratic(ctx, e, seed, n); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range 5 {
			next := newFake(14)
			next.gate, next.salt = f.gate, uint64(i+1)
			if err := e.swap(ctx, fmt.Sprint(i+1), func(runner) runner { return next }); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		s := eventually(t, e, "all blocks to be free", func(s Stats) bool { return s.FreeBlocks == 14 && s.Sessions+s.Running+s.Waiting == 0 })
		if s.Preemptions == 0 || s.Evictions == 0 || s.CachedTokens == 0 {
			t.Errorf("the engine was not short of blocks, or shared nothing: %+v", s)
		}
		stop()
	}
}

// feed lets the fake model step until ctx ends.
func feed(ctx context.Context, gate chan struct{}) {
	for {
		select {
		case gate <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

var errGivenUp = errors.New("given up")

// erratic is one caller with its own addressed whims.
func erratic(ctx context.Context, e *Engine, seed uint64, n int) error {
	whim := func(turn, i, of int) int {
		return philox.NewKey(seed).IntN(philox.Address{Purpose: philox.Shuffle, Ordinal: n, Turn: turn, Token: i}, of)
	}
	ids, session := prompt(100+n%5, int32(n/6)), fmt.Sprint(n)
	defer e.Release(session)
	for turn := range 12 {
		r := Request{Session: session, Group: fmt.Sprint(n / 6), IDs: ids, MaxNew: 1 + whim(turn, 0, 60), Temperature: 1, Stop: []int32{3},
			Seed: seed, Address: philox.Address{Ordinal: n, Turn: turn}}
		if whim(turn, 1, 3) == 0 {
			short, cancel := context.WithCancelCause(ctx)
			go func() {
				for range whim(turn, 2, 200) {
					e.Stats()
				}
				cancel(errGivenUp)
			}()
			if _, err := e.Generate(short, r); err != nil && !errors.Is(err, errGivenUp) {
				return err
			}
		}
		if whim(turn, 3, 5) == 0 {
			e.Release(session)
		}
		got, err := e.Generate(ctx, r)
		if err != nil {
			return err
		}
		var salt uint64
		_, _ = fmt.Sscan(got.Version, &salt) // "v1", the first version, has salt 0
		if want := oracle(salt, r); !reflect.DeepEqual(got.IDs, want.IDs) || !reflect.DeepEqual(got.LogProbs, want.LogProbs) {
			return fmt.Errorf("seed %d session %d turn %d version %s: got %v, want %v", seed, n, turn, got.Version, got.IDs, want.IDs)
		}
		ids = append(append(append([]int32(nil), ids...), got.IDs...), prompt(1+whim(turn, 4, 30), int32(n))...)
		if whim(turn, 5, 3) == 0 || len(ids) > 400 {
			ids = ids[:1+whim(turn, 6, min(len(ids), 300))]
		}
	}
	return nil
}
