package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
)

const fakeVocab = 23

// fakeRunner keeps ids where a model keeps KV, and its logits are a hash of all ids it finds through a block table. So a sequence that
// reads a slot with anything but its own context's id there samples differently from the oracle.
type fakeRunner struct {
	salt     uint64
	maxCtx   int
	mu       sync.Mutex
	slots    [][model.BlockTokens]int32
	widest   int           // spans in the widest step
	gate     chan struct{} // if not nil, each step takes one token from it
	failWith error
}

func newFake(blocks int) *fakeRunner {
	return &fakeRunner{slots: make([][model.BlockTokens]int32, blocks)}
}

func (f *fakeRunner) extend(ctx context.Context, spans []model.Span, choices []model.Choice, top int, out []model.Draw) ([]model.Draw, error) {
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failWith != nil {
		return out, f.failWith
	}
	f.widest = max(f.widest, len(spans))
	written := map[int]int{}
	for i, s := range spans {
		for j, id := range s.IDs {
			p := s.Start + j
			b := s.Blocks[p/model.BlockTokens]
			if other, ok := written[b]; ok && other != i {
				return out, fmt.Errorf("spans %d and %d write block %d", other, i, b)
			}
			written[b] = i
			f.slots[b][p%model.BlockTokens] = id
		}
	}
	for _, s := range spans {
		if !s.Want {
			continue
		}
		ids := make([]int32, s.Start+len(s.IDs))
		for p := range ids {
			ids[p] = f.slots[s.Blocks[p/model.BlockTokens]][p%model.BlockTokens]
		}
		out = append(out, model.SampleRow(fakeLogits(f.salt, ids), choices[0], top))
		choices = choices[1:]
	}
	if len(choices) != 0 {
		return out, fmt.Errorf("%d choices without a span", len(choices))
	}
	return out, nil
}

func (f *fakeRunner) copyBlock(dst, src int) { f.slots[dst] = f.slots[src] }
func (f *fakeRunner) vocab() int             { return fakeVocab }
func (f *fakeRunner) positions() int         { return f.maxCtx }

func fakeLogits(salt uint64, ids []int32) []float32 {
	h := fnv.New64a()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], salt)
	h.Write(b[:])
	for _, id := range ids {
		binary.LittleEndian.PutUint32(b[:4], uint32(id))
		h.Write(b[:4])
	}
	out := make([]float32, fakeVocab)
	k := philox.NewKey(h.Sum64())
	for i := range out {
		out[i] = float32(4 * k.Uniform(philox.Address{Token: i}))
	}
	return out
}

// oracle samples a turn without an engine.
func oracle(salt uint64, r Request) Generation {
	ids := append([]int32(nil), r.IDs...)
	var g Generation
	for i := range r.MaxNew {
		c := model.Choice{Temperature: r.Temperature, TopK: r.TopK, TopP: r.TopP, Key: philox.NewKey(r.Seed), At: r.Address.WithToken(i)}
		d := model.SampleRow(fakeLogits(salt, ids), c, r.TopLogProbs)
		ids = append(ids, d.ID)
		g.IDs, g.LogProbs, g.Entropy = append(g.IDs, d.ID), append(g.LogProbs, d.LogP), append(g.Entropy, d.Entropy)
		if r.TopLogProbs > 0 {
			g.TopLogProbs = append(g.TopLogProbs, d.Top)
		}
		for _, stop := range r.Stop {
			if d.ID == stop {
				g.Finish = FinishStop
				return g
			}
		}
	}
	g.Finish = FinishLength
	return g
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	return ctx
}

func startFake(t testing.TB, f *fakeRunner, opt Options) *Engine {
	t.Helper()
	opt = opt.withDefaults()
	if f == nil {
		f = newFake(opt.Blocks)
	}
	e := start(f, "v1", opt)
	t.Cleanup(e.Close)
	return e
}

// eventually waits for a condition on the engine's statistics.
func eventually(t *testing.T, e *Engine, what string, ok func(Stats) bool) Stats {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		s := e.Stats()
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited 30s for %s; stats are %+v", what, s)
		}
		e.poke()
	}
}

func prompt(n int, salt int32) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = (int32(i)*7 + salt*13 + int32(i*i)%5) % fakeVocab
	}
	return ids
}
