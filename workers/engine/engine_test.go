package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
)

// trajectory runs a session of several turns, each followed by tool ids, and checks every turn against the oracle.
func trajectory(ctx context.Context, e *Engine, number int) error {
	ids := prompt(150+number%3, int32(number/8)) // eight samples of each prompt
	session := fmt.Sprint("s", number)
	defer e.Release(session)
	for turn := range 4 {
		r := Request{
			Session: session, Group: fmt.Sprint("g", number/8), IDs: ids, MaxNew: 20 + number%50, Temperature: 1, Stop: []int32{3, 5},
			Seed: 9, Address: philox.Address{Purpose: philox.Rollout, Ordinal: number / 8, Sample: number % 8, Turn: turn},
			TopK: number % 3 * 5, TopP: float32(number%4) / 4, TopLogProbs: number % 2 * 3,
		}
		got, err := e.Generate(ctx, r)
		if err != nil {
			return err
		}
		want := oracle(0, r)
		want.Version = "v1"
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("session %d turn %d: got %v (%s), want %v (%s)", number, turn, got.IDs, got.Finish, want.IDs, want.Finish)
		}
		ids = append(append(append([]int32(nil), ids...), got.IDs...), prompt(10+17*turn, int32(number))...)
	}
	return nil
}

func TestTokensDoNotDependOnCompanyChunkingCachingOrPreemption(t *testing.T) {
	for _, opt := range []Options{
		{Blocks: 512, MaxRows: 256, MaxPrefillTokens: 512},
		{Blocks: 512, MaxRows: 1, MaxPrefillTokens: 64},
		{Blocks: 512, MaxRows: 64, MaxPrefillTokens: 7},
		{Blocks: 40, MaxRows: 64, MaxPrefillTokens: 300},
		{Blocks: 9, MaxRows: 16, MaxPrefillTokens: 64},
		{Blocks: 8, MaxRows: 3, MaxPrefillTokens: 1},
	} {
		t.Run(fmt.Sprintf("%+v", opt), func(t *testing.T) {
			f := newFake(opt.Blocks)
			f.gate = make(chan struct{})
			e := startFake(t, f, opt)
			ctx := testContext(t)
			var wg sync.WaitGroup
			for n := range 64 {
				wg.Go(func() {
					if err := trajectory(ctx, e, n); err != nil {
						t.Error(err)
					}
				})
			}
			eventually(t, e, "all 64 requests", func(s Stats) bool { // they crowd the engine on any number of processors
				e.mu.Lock()
				defer e.mu.Unlock()
				return len(e.inbox)+s.Running+s.Waiting >= 64
			})
			close(f.gate)
			wg.Wait()
			s := eventually(t, e, "all blocks to be free", func(s Stats) bool { return s.FreeBlocks == opt.Blocks && s.Sessions == 0 })
			if opt.Blocks < 20 && s.Preemptions+s.Evictions == 0 {
				t.Errorf("64 trajectories in %d blocks without preemption or eviction: %+v", opt.Blocks, s)
			}
			if opt.Blocks > 500 && s.Preemptions+s.Evictions > 0 && opt.MaxRows == 1 {
				t.Errorf("one running sequence in %d blocks gave up blocks: %+v", opt.Blocks, s)
			}
		})
	}
}

func TestAGroupsPromptIsComputedOnce(t *testing.T) {
	for _, n := range []int{300, 320, 321, 65, 64, 40} {
		f := newFake(512)
		f.gate = make(chan struct{})
		e := startFake(t, f, Options{})
		ctx, ids := testContext(t), prompt(n, 1)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				r := Request{Session: fmt.Sprint(i), Group: "g", IDs: ids, MaxNew: 5, Temperature: 1, Address: philox.Address{Sample: i}}
				g, err := e.Generate(ctx, r)
				if want := oracle(0, r); err != nil || !reflect.DeepEqual(g.IDs, want.IDs) {
					t.Errorf("prompt of %d ids, sample %d: %v, %v, want %v", n, i, g.IDs, err, want.IDs)
				}
			})
		}
		eventually(t, e, "the group to arrive", func(s Stats) bool { return s.Running > 0 })
		close(f.gate)
		wg.Wait()
		// Each follower computes only the last prompt id, whose logits it needs.
		if s := e.Stats(); s.PrefillTokens != int64(n+15) || s.CachedTokens != int64(15*(n-1)) {
			t.Errorf("prompt of %d ids: computed %d and found %d ids, want %d and %d", n, s.PrefillTokens, s.CachedTokens, n+15, 15*(n-1))
		}
	}
}

func TestGroupsShareACommonSystemPrompt(t *testing.T) {
	e := startFake(t, nil, Options{})
	ctx, system := testContext(t), prompt(130, 1)
	for i, question := range []int32{5, 6} {
		ids := append(append([]int32(nil), system...), prompt(30, question)...)
		if _, err := e.Generate(ctx, Request{IDs: ids, Group: fmt.Sprint(i), MaxNew: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if s := e.Stats(); s.CachedTokens != 128 || s.PrefillTokens != 160+32 {
		t.Errorf("found %d and computed %d ids, want the two whole blocks found (128) and 192 computed", s.CachedTokens, s.PrefillTokens)
	}
}

func TestEarlierTurnsAreNeverComputedAgain(t *testing.T) {
	e := startFake(t, nil, Options{})
	ctx, ids := testContext(t), prompt(100, 1)
	computed := 0
	for turn := range 5 {
		g, err := e.Generate(ctx, Request{Session: "s", IDs: ids, MaxNew: 30, Temperature: 1, Address: philox.Address{Turn: turn}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(append(ids, g.IDs...), prompt(11, 2)...)
		computed = len(ids) - 11 - 1 // all but the turn's last id, which nothing has followed yet
	}
	s := e.Stats()
	if total := s.PrefillTokens + s.GeneratedTokens - 5; total != int64(computed) {
		t.Errorf("computed KV of %d ids for a context of %d", total, computed)
	}
}

func TestATurnMayBeAskedAgainOrBranchAnywhere(t *testing.T) {
	e := startFake(t, nil, Options{})
	ctx, base := testContext(t), prompt(200, 1)
	for _, n := range []int{200, 200, 130, 129, 128, 127, 64, 63, 1, 190, 200} {
		ids := append(append([]int32(nil), base[:n]...), 7, 8, 9)
		for _, session := range []string{"s", "t"} {
			r := Request{Session: session, Group: "g", IDs: ids, MaxNew: 70, Temperature: 1, Address: philox.Address{Turn: n}}
			g, err := e.Generate(ctx, r)
			if want := oracle(0, r); err != nil || !reflect.DeepEqual(g.IDs, want.IDs) {
				t.Fatalf("session %s branching at %d: %v, %v, want %v", session, n, g.IDs, err, want.IDs)
			}
		}
	}
}

func TestTrap19SwapWaitsForRunningGenerationsAndDropsTheirKV(t *testing.T) {
	f := newFake(512)
	f.gate = make(chan struct{})
	e := startFake(t, f, Options{})
	ctx := testContext(t)
	r := Request{Session: "s", IDs: prompt(80, 1), MaxNew: 3, Temperature: 1}
	results := make(chan Generation, 2)
	generate := func() {
		g, err := e.Generate(ctx, r)
		if err != nil {
			t.Error(err)
		}
		results <- g
	}
	go generate()
	eventually(t, e, "the first generation", func(s Stats) bool { return s.Running == 1 })
	f.gate <- struct{}{}
	next := newFake(512)
	next.salt = 77
	swapped := make(chan error, 1)
	go func() { swapped <- e.swap(ctx, "v2", func(runner) runner { return next }) }()
	f.gate <- struct{}{}
	select {
	case err := <-swapped:
		t.Fatalf("swap ended (%v) while a generation was running", err)
	case <-time.After(10 * time.Millisecond):
	}
	close(f.gate)
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	if g := <-results; g.Version != "v1" || !reflect.DeepEqual(g.IDs, oracle(0, r).IDs) {
		t.Errorf("generation around the swap is %v of %q, want one of v1", g.IDs, g.Version)
	}
	r.IDs = append(append([]int32(nil), r.IDs...), 1, 2)
	go generate()
	if g := <-results; g.Version != "v2" || !reflect.DeepEqual(g.IDs, oracle(77, r).IDs) {
		t.Errorf("generation after the swap is %v of %q, want one of v2 and no KV of v1", g.IDs, g.Version)
	}
}

func TestASwapGivenUpReplacesNothing(t *testing.T) {
	f := newFake(512)
	f.gate = make(chan struct{})
	e := startFake(t, f, Options{})
	ctx := testContext(t)
	r := Request{IDs: prompt(80, 1), MaxNew: 3, Temperature: 1}
	done := make(chan Generation, 2)
	go func() { g, _ := e.Generate(ctx, r); done <- g }()
	f.gate <- struct{}{}
	short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	defer stop()
	err := e.swap(short, "v2", func(runner) runner { return newFake(512) })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"v2"`) {
		t.Fatalf("swap under a deadline returned %v", err)
	}
	go func() { g, _ := e.Generate(ctx, r); done <- g }()
	close(f.gate)
	for range 2 {
		if g := <-done; g.Version != "v1" || len(g.IDs) != 3 {
			t.Errorf("after a swap given up: %v of %q, want 3 ids of v1", g.IDs, g.Version)
		}
	}
}

func TestAContextEndsAWaitAndKeepsTheSession(t *testing.T) {
	f := newFake(512)
	f.gate = make(chan struct{}, 1000)
	e := startFake(t, f, Options{})
	ctx, cancel := context.WithCancelCause(testContext(t))
	r := Request{Session: "s", IDs: prompt(80, 1), MaxNew: 100, Temperature: 1}
	failed := make(chan error, 1)
	go func() { _, err := e.Generate(ctx, r); failed <- err }()
	f.gate <- struct{}{}
	cause := errors.New("the trajectory was cancelled")
	cancel(cause)
	if err := <-failed; !errors.Is(err, cause) || !strings.Contains(err.Error(), `"s"`) {
		t.Fatalf("cancelled generation returned %v", err)
	}
	close(f.gate)
	g, err := e.Generate(testContext(t), r)
	if err != nil || !reflect.DeepEqual(g.IDs, oracle(0, r).IDs) {
		t.Fatalf("the same turn again: %v, %v", g.IDs, err)
	}
	e.Release("s")
	eventually(t, e, "all blocks to be free", func(s Stats) bool { return s.FreeBlocks == 512 && s.Running == 0 })
}

func TestARequestThatCannotBeServedIsRefusedWithItsReason(t *testing.T) {
	f := newFake(4)
	f.maxCtx = 300
	e := startFake(t, f, Options{Blocks: 4})
	good := Request{Session: "s", IDs: prompt(10, 1), MaxNew: 5}
	for want, change := range map[string]func(*Request){
		"IDs is empty":           func(r *Request) { r.IDs = nil },
		"MaxNew is 0":            func(r *Request) { r.MaxNew = 0 },
		"Temperature is -1":      func(r *Request) { r.Temperature = -1 },
		"TopK is -1":             func(r *Request) { r.TopK = -1 },
		"TopP is 1.5":            func(r *Request) { r.TopP = 1.5 },
		"TopP is NaN":            func(r *Request) { r.TopP = float32(math.NaN()) },
		"TopLogProbs is 21":      func(r *Request) { r.TopLogProbs = 21 },
		"does not fit":           func(r *Request) { r.Address.Turn = 1 << 20 },
		"300 positions":          func(r *Request) { r.MaxNew = 291 },
		"the engine has 4":       func(r *Request) { r.MaxNew = 280 },
		"outside the vocabulary": func(r *Request) { r.IDs = []int32{1, fakeVocab} },
	} {
		r := good
		change(&r)
		if _, err := e.Generate(testContext(t), r); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("refusal is %v, want ErrRequest with %q", err, want)
		}
	}
	if g, err := e.Generate(testContext(t), good); err != nil || len(g.IDs) != 5 {
		t.Errorf("a good request after the refused: %v, %v", g, err)
	}
}

func TestOneSessionGeneratesOneTurnAtATime(t *testing.T) {
	f := newFake(512)
	f.gate = make(chan struct{})
	e := startFake(t, f, Options{})
	r := Request{Session: "s", IDs: prompt(80, 1), MaxNew: 2}
	first := make(chan error, 1)
	go func() { _, err := e.Generate(testContext(t), r); first <- err }()
	f.gate <- struct{}{}
	second := make(chan error, 1)
	go func() { _, err := e.Generate(testContext(t), r); second <- err }()
	close(f.gate)
	if a, b := <-first, <-second; a != nil || b != nil && !errors.Is(b, ErrBusy) {
		t.Errorf("two turns of one session: %v, %v, want success and ErrBusy", a, b)
	}
}

func TestAModelErrorFailsItsCallsAndLeavesTheEngineUsable(t *testing.T) {
	f := newFake(512)
	e := startFake(t, f, Options{})
	f.failWith = errors.New("kernel fault")
	r := Request{Session: "s", IDs: prompt(80, 1), MaxNew: 2}
	if _, err := e.Generate(testContext(t), r); err == nil || !strings.Contains(err.Error(), "kernel fault") {
		t.Fatalf("got %v, want the kernel's fault", err)
	}
	f.mu.Lock()
	f.failWith = nil
	f.mu.Unlock()
	if g, err := e.Generate(testContext(t), r); err != nil || !reflect.DeepEqual(g.IDs, oracle(0, r).IDs) {
		t.Errorf("after the fault: %v, %v", g, err)
	}
}

func TestCloseEndsEveryWait(t *testing.T) {
	f := newFake(512)
	f.gate = make(chan struct{})
	e := startFake(t, f, Options{})
	failed := make(chan error, 4)
	for i := range 3 {
		go func() {
			_, err := e.Generate(testContext(t), Request{IDs: prompt(80, int32(i)), MaxNew: 2})
			failed <- err
		}()
	}
	go func() {
		f.gate <- struct{}{}
		failed <- e.swap(testContext(t), "v2", func(r runner) runner { return r })
	}()
	time.Sleep(5 * time.Millisecond)
	e.Close()
	for range 4 {
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("wait ended with %v, want ErrClosed", err)
		}
	}
	if _, err := e.Generate(testContext(t), Request{IDs: []int32{1}, MaxNew: 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("Generate after Close: %v", err)
	}
}

func TestSequencesAreSteppedTogether(t *testing.T) {
	f := newFake(512)
	f.gate = make(chan struct{})
	e := startFake(t, f, Options{MaxRows: 40, MaxPrefillTokens: 4096})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, err := e.Generate(testContext(t), Request{IDs: prompt(30, int32(i)), MaxNew: 20}); err != nil {
				t.Error(err)
			}
		})
	}
	for range 3 { // the first step may have met only a few of the callers
		f.gate <- struct{}{}
		time.Sleep(20 * time.Millisecond)
	}
	close(f.gate)
	wg.Wait()
	if f.widest != 40 {
		t.Errorf("widest step has %d sequences, want MaxRows 40", f.widest)
	}
}

func TestEveryIdIsToldAsItIsDrawn(t *testing.T) {
	f := newFake(512)
	f.gate = make(chan struct{})
	e := startFake(t, f, Options{})
	told := make(chan Token, 100)
	r := Request{IDs: prompt(80, 1), MaxNew: 9, Temperature: 1, TopLogProbs: 2, OnToken: func(k Token) { told <- k }}
	done := make(chan Generation, 1)
	go func() {
		g, err := e.Generate(testContext(t), r)
		if err != nil {
			t.Error(err)
		}
		done <- g
	}()
	want := oracle(0, r)
	for i, id := range want.IDs {
		f.gate <- struct{}{} // one step, one id
		k := <-told
		if k.ID != id || k.LogProb != want.LogProbs[i] || k.Entropy != want.Entropy[i] || !reflect.DeepEqual(k.TopLogProbs, want.TopLogProbs[i]) {
			t.Fatalf("id %d was told as %+v, want %d with %v", i, k, id, want.LogProbs[i])
		}
	}
	if g := <-done; !reflect.DeepEqual(g.IDs, want.IDs) || !reflect.DeepEqual(g.TopLogProbs, want.TopLogProbs) || len(told) != 0 {
		t.Errorf("after %d ids told the generation is %v with %v", len(want.IDs), g.IDs, g.TopLogProbs)
	}
}

func TestNothingIsToldAfterACallerHasLeft(t *testing.T) {
	e := startFake(t, nil, Options{})
	for range 50 {
		ctx, cancel := context.WithCancel(testContext(t))
		var returned atomic.Bool
		n := 0
		_, err := e.Generate(ctx, Request{IDs: prompt(80, 1), MaxNew: 500, Temperature: 1, OnToken: func(Token) {
			if returned.Load() {
				t.Error("an id was told after Generate had returned")
			}
			if n++; n == 3 {
				cancel()
			}
		}})
		returned.Store(true)
		if !errors.Is(err, context.Canceled) || n < 3 {
			t.Fatalf("generation cancelled at its third id: %v after %d ids", err, n)
		}
	}
}

func TestASequenceIsAdmittedWhenItsBlocksAreFree(t *testing.T) {
	f := newFake(4)
	f.gate = make(chan struct{})
	e := startFake(t, f, Options{Blocks: 4})
	done := make(chan Generation, 2)
	ask := func(sample int) {
		r := Request{IDs: prompt(150, int32(sample)), MaxNew: 4, Temperature: 1, Address: philox.Address{Sample: sample}}
		g, err := e.Generate(testContext(t), r)
		if want := oracle(0, r); err != nil || !reflect.DeepEqual(g.IDs, want.IDs) {
			t.Errorf("sample %d: %v, %v, want %v", sample, g.IDs, err, want.IDs)
		}
		done <- g
	}
	go ask(0)
	f.gate <- struct{}{}
	go ask(1)
	eventually(t, e, "the second request", func(s Stats) bool { // posted, or taken already between two steps
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.inbox) > 0 || s.Waiting == 1
	})
	f.gate <- struct{}{}
	s := eventually(t, e, "the second sequence", func(s Stats) bool { return s.Waiting == 1 })
	if s.Running != 1 || s.FreeBlocks != 1 {
		t.Errorf("a context of three blocks is beside one of three in an engine of four: %+v", s)
	}
	close(f.gate)
	<-done
	<-done
	if s := e.Stats(); s.Preemptions+s.Evictions != 0 {
		t.Errorf("sequences that run one after the other gave up blocks: %+v", s)
	}
}

func TestTrap12EveryStopIdEndsATurnAndIsPartOfIt(t *testing.T) {
	e := startFake(t, nil, Options{})
	ends := map[int32]bool{}
	for i := range 200 {
		r := Request{IDs: prompt(20, 1), MaxNew: 100, Temperature: 1, Stop: []int32{3, 5, 11}, Address: philox.Address{Sample: i}}
		g, err := e.Generate(testContext(t), r)
		if err != nil {
			t.Fatal(err)
		}
		last := g.IDs[len(g.IDs)-1]
		if g.Finish != FinishStop || !slices.Contains(r.Stop, last) {
			t.Fatalf("turn %d ended with %d by %s after %d ids", i, last, g.Finish, len(g.IDs))
		}
		for _, id := range g.IDs[:len(g.IDs)-1] {
			if slices.Contains(r.Stop, id) {
				t.Fatalf("turn %d goes on after stop id %d: %v", i, id, g.IDs)
			}
		}
		ends[last] = true
	}
	if len(ends) != 3 {
		t.Errorf("200 turns ended with %v, want each of the three stop ids", ends)
	}
}

func TestTrap19AKeyNamesTheWeightsAndEveryIdUpToItsEnd(t *testing.T) {
	base := rootKey("v1").next([]int32{1, 2, 3}).next([]int32{4})
	for name, k := range map[string]key{
		"another version":       rootKey("v2").next([]int32{1, 2, 3}).next([]int32{4}),
		"another earlier id":    rootKey("v1").next([]int32{1, 9, 3}).next([]int32{4}),
		"another last id":       rootKey("v1").next([]int32{1, 2, 3}).next([]int32{5}),
		"another cut":           rootKey("v1").next([]int32{1, 2}).next([]int32{3, 4}),
		"a longer continuation": rootKey("v1").next([]int32{1, 2, 3}).next([]int32{4, 5}),
	} {
		if k == base {
			t.Errorf("%s has the same key", name)
		}
	}
}
