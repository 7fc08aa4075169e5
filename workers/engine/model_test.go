package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
)

// inBothPrecisions runs a test on models that multiply in fp32 and in bf16.
func inBothPrecisions(t *testing.T, f func(t *testing.T, p model.Option)) {
	for _, p := range []model.Precision{model.PrecisionFP32, model.PrecisionBF16} {
		t.Run(string(p), func(t *testing.T) { f(t, model.WithPrecision(p)) })
	}
}

func tinyModel(t testing.TB, seed uint64, opts ...model.Option) *model.Model {
	t.Helper()
	m, err := model.New(model.Config{VocabSize: 61, HiddenSize: 32, IntermediateSize: 48, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8,
		MaxPosition: 1024, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3}, seed, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// turns is a whole trajectory: context ids, which of them were sampled, and their log-probs.
type turns struct {
	IDs     []int32
	Sampled []bool
	LogP    []float32
	Entropy []float32
}

// play runs one trajectory of three turns with tool ids between them.
func play(t *testing.T, e *Engine, number int, temperature float32) turns {
	var out turns
	add := func(ids []int32, logp, entropy []float32) {
		for i, id := range ids {
			out.IDs = append(out.IDs, id)
			out.Sampled = append(out.Sampled, logp != nil)
			var l, h float32
			if logp != nil {
				l, h = logp[i], entropy[i]
			}
			out.LogP, out.Entropy = append(out.LogP, l), append(out.Entropy, h)
		}
	}
	add(prompt(61+40*(number/4%3), int32(number/4)), nil, nil)
	for turn := range 3 {
		g, err := e.Generate(testContext(t), Request{
			Session: fmt.Sprint(number), Group: fmt.Sprint(number / 4), IDs: out.IDs, MaxNew: 9 + 14*(number%5), Temperature: temperature,
			Stop: []int32{2, 60}, Seed: 3, Address: philox.Address{Purpose: philox.Rollout, Ordinal: number / 4, Sample: number % 4, Turn: turn},
		})
		if err != nil {
			t.Error(err)
			return out
		}
		add(g.IDs, g.LogProbs, g.Entropy)
		add(prompt(5+3*turn, int32(number)), nil, nil)
	}
	return out
}

func playAll(t *testing.T, m *model.Model, opt Options, numbers []int, temperature float32) map[int]turns {
	e, err := New(m, "v1", opt)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[int]turns{}
	for _, n := range numbers {
		wg.Go(func() {
			tr := play(t, e, n, temperature)
			mu.Lock()
			defer mu.Unlock()
			out[n] = tr
		})
	}
	wg.Wait()
	s := e.Stats()
	if opt.Blocks > 0 && opt.Blocks < 30 && s.Evictions+s.Preemptions == 0 {
		t.Errorf("%+v: nothing was evicted or preempted", opt)
	}
	return out
}

func TestTheModelsTokensAreTheSameAloneInCompanyAndAfterPreemption(t *testing.T) {
	all := make([]int, 64)
	for i := range all {
		all[i] = i
	}
	inBothPrecisions(t, func(t *testing.T, p model.Option) {
		m := tinyModel(t, 1, p)
		want := playAll(t, m, Options{}, all, 1)
		for _, opt := range []Options{
			{Blocks: 24, MaxRows: 64, MaxPrefillTokens: 100},
			{Blocks: 7, MaxRows: 8, MaxPrefillTokens: 33},
			{Blocks: 512, MaxRows: 5, MaxPrefillTokens: 1},
		} {
			if got := playAll(t, m, opt, all, 1); !reflect.DeepEqual(got, want) {
				t.Errorf("%+v: trajectories differ from those of an engine with room for all", opt)
			}
		}
		for _, n := range []int{0, 17, 63} {
			if got := playAll(t, m, Options{}, []int{n}, 1); !reflect.DeepEqual(got[n], want[n]) {
				t.Errorf("trajectory %d alone differs from the one among 64", n)
			}
		}
	})
}

func TestTrap05SamplerAndTrainerAgreeToTheBit(t *testing.T) {
	inBothPrecisions(t, func(t *testing.T, p model.Option) {
		m := tinyModel(t, 2, p)
		for n, tr := range playAll(t, m, Options{Blocks: 20}, []int{0, 1, 5, 8, 13, 14, 22, 39}, 1) {
			agrees(t, m, fmt.Sprintf("trajectory %d", n), tr.IDs, tr.Sampled, tr.LogP, tr.Entropy)
		}
	})
}

// agrees compares what the sampler reported of sampled ids with a teacher-forced pass over them.
func agrees(t *testing.T, m *model.Model, what string, ids []int32, sampled []bool, logp, entropy []float32) {
	t.Helper()
	wantP, wantH, err := m.LogProbs(t.Context(), nil, model.Pack(ids))
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		if sampled[i] && (wantP[i] != logp[i] || wantH[i] != entropy[i]) {
			t.Fatalf("%s token %d: sampler has %v (entropy %v), trainer %v (%v)", what, i, logp[i], entropy[i], wantP[i], wantH[i])
		}
	}
}

// TestTrap05SamplerAndTrainerAgreeAtEveryBlockEdge has prompts that end before, at and after the edges of blocks, in batches of 1, 3 and 8, where
// the sampler and the trainer have 1 and 2 threads in turn.
func TestTrap05SamplerAndTrainerAgreeAtEveryBlockEdge(t *testing.T) {
	lengths := []int{63, 64, 65, 127, 128, 129, 1, 191}
	inBothPrecisions(t, func(t *testing.T, p model.Option) {
		m := tinyModel(t, 6, p)
		for _, threads := range []int{1, 2} {
			for _, batch := range []int{1, 3, 8} {
				for from := 0; from < len(lengths); from += batch {
					edge(t, m, threads, lengths[from:min(from+batch, len(lengths))])
				}
			}
		}
	})
}

// edge samples beyond prompts of some lengths, all in one engine on a number of threads, and scores the result on another.
func edge(t *testing.T, m *model.Model, threads int, lengths []int) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	e, err := New(m, "v1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	out := make([]Generation, len(lengths))
	var wg sync.WaitGroup
	for i, n := range lengths {
		wg.Go(func() {
			var err error
			r := Request{IDs: prompt(n, int32(n)), MaxNew: 67, Temperature: 1, Address: philox.Address{Ordinal: n}}
			if out[i], err = e.Generate(testContext(t), r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	runtime.GOMAXPROCS(3 - threads)
	for i, n := range lengths {
		blank := make([]float32, n)
		sampled := append(make([]bool, n), slices.Repeat([]bool{true}, len(out[i].IDs))...)
		agrees(t, m, fmt.Sprintf("prompt of %d among %v, %d threads:", n, lengths, threads), append(prompt(n, int32(n)), out[i].IDs...), sampled,
			append(blank, out[i].LogProbs...), append(slices.Clone(blank), out[i].Entropy...))
	}
}

func TestTrap04GreedyIsTheLikeliestTokenOfTheTrainer(t *testing.T) {
	m := tinyModel(t, 3)
	tr := playAll(t, m, Options{}, []int{3}, 0)[3]
	for i, checked := 0, 0; i < len(tr.IDs) && checked < 6; i++ {
		if !tr.Sampled[i] {
			continue
		}
		checked++
		var p model.Packed // the context once with each id after it
		for id := range int32(m.Config.VocabSize) {
			p.Offsets = append(p.Offsets, len(p.IDs))
			p.IDs = append(append(p.IDs, tr.IDs[:i]...), id)
		}
		p.Offsets = append(p.Offsets, len(p.IDs))
		logp, _, err := m.LogProbs(t.Context(), nil, p)
		if err != nil {
			t.Fatal(err)
		}
		at := func(id int32) float32 { return logp[p.Offsets[id+1]-1] }
		best := int32(0)
		for id := range int32(m.Config.VocabSize) {
			if at(id) > at(best) {
				best = id
			}
		}
		if best != tr.IDs[i] || at(best) != tr.LogP[i] {
			t.Fatalf("token %d is %d (%v), the likeliest is %d (%v)", i, tr.IDs[i], tr.LogP[i], best, at(best))
		}
	}
}

func TestTrap19WeightsChangedInPlaceAreSampledAfterASwap(t *testing.T) {
	m, other := tinyModel(t, 4), tinyModel(t, 5)
	e, err := New(m, "v1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := Request{Session: "s", Group: "g", IDs: prompt(150, 1), MaxNew: 40, Temperature: 1}
	first, err := e.Generate(testContext(t), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.SetTensors(other.Tensors()); err != nil {
		t.Fatal(err)
	}
	if err := e.Swap(testContext(t), m, "v2"); err != nil {
		t.Fatal(err)
	}
	got, err := e.Generate(testContext(t), r)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := New(other, "v2", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	want, err := fresh.Generate(testContext(t), r)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) || reflect.DeepEqual(got.IDs, first.IDs) {
		t.Errorf("after the swap %v of %s, want %v as of a new engine", got.IDs, got.Version, want.IDs)
	}
}
