package activities

import (
	"os"
	"testing"

	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/store"
	"go.temporal.io/sdk/testsuite"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

// bench drives the activities in the order of the workflows, in one process and without a server.
type bench struct {
	t    *testing.T
	env  *testsuite.TestActivityEnvironment
	st   store.Store
	rec  recipe.Recipe
	cur  *Curation
	tr   *Trainer
	ro   *Rollouts
	sel  *Selection
	sco  *Scoring
	eng  *Engines
	pool *Pools
}

const benchRun = "learn"

func call[T any](b *bench, fn any, in any) T {
	b.t.Helper()
	v, err := b.env.ExecuteActivity(fn, in)
	if err != nil {
		b.t.Fatalf("%T: %v", in, err)
	}
	var out T
	if v != nil && v.HasValue() {
		if err := v.Get(&out); err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}
