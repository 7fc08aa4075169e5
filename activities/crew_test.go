package activities

import (
	"sync"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/store"
)

// use takes the engine of a version and keeps it.
func use(t *testing.T, e *Engines, w Weights) (agent.Engine, func()) {
	t.Helper()
	eng, done, err := e.Use(t.Context(), benchRun, w)
	must(t, err)
	return eng, done
}

func TestAVersionHasOneEngineForAllWhoUseIt(t *testing.T) {
	st, p := toyRun(t)
	e := process(t, st).eng
	engines := make([]agent.Engine, 8)
	var wg sync.WaitGroup
	for i := range engines {
		wg.Go(func() {
			eng, done, err := e.Use(t.Context(), benchRun, p.first)
			if err != nil {
				t.Error(err)
				return
			}
			engines[i] = eng
			done()
		})
	}
	wg.Wait()
	for _, eng := range engines {
		if eng != engines[0] {
			t.Fatal("one version has two engines")
		}
	}
}

func TestEnginesInUseStayAndIdleOnesGoOldestFirst(t *testing.T) {
	st, _, out := undisturbed(t, 2)
	e := process(t, st).eng
	first, doneFirst := use(t, e, out[0].Weights)
	_, done := use(t, e, out[1].Weights)
	done()
	_, done = use(t, e, toy.sft) // the third: the second is idle and goes
	done()
	if again, done := use(t, e, out[0].Weights); again != first {
		t.Fatal("an engine in use was replaced")
	} else {
		done()
	}
	doneFirst()
	if len(e.held) != enginesHeld || e.held[0].weights != toy.sft || e.held[1].weights != out[0].Weights {
		t.Fatalf("%d engines are held, want those of %s and %s", len(e.held), toy.sft.Version, out[0].Weights.Version)
	}
}

func TestAnEngineThatDidNotStartIsTriedAgain(t *testing.T) {
	st, p := toyRun(t)
	e := process(t, st).eng
	keys := weightsKeys(t, st, p.first)
	bodies := map[string][]byte{}
	for _, key := range keys {
		bodies[key] = get(t, st, key)
		must(t, st.Delete(t.Context(), key))
	}
	if _, _, err := e.Use(t.Context(), benchRun, p.first); err == nil || !isNotFound(err) {
		t.Fatalf("error %v, want %v", err, store.ErrNotFound)
	}
	for key, body := range bodies {
		put(t, st, key, body)
	}
	_, done := use(t, e, p.first)
	done()
}
