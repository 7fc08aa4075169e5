package activities

import (
	"fmt"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/store"
)

// filtered journals what the policy made of the first problems in the stage's order, and filters.
func filtered(t *testing.T, st store.Store, set Dataset, tried ...[]ended) (Dataset, []problem.Problem) {
	t.Helper()
	for i, g := range tried {
		putGroup(t, st, SliceInput{Run: benchRun, Stage: "two", Purpose: PurposeFilter, Round: PurposeFilter, Ordinal: i}, g, asMade)
	}
	b := process(t, st)
	in := FilterInput{Run: benchRun, Stage: "two", StageIndex: 1, Problems: set, Tried: len(tried), Samples: len(tried[0])}
	kept := call[Dataset](b, b.sel.FilterProblems, in)
	if again := call[Dataset](b, b.sel.FilterProblems, in); again != kept {
		t.Fatalf("filtered again: %+v, want %+v", again, kept)
	}
	problems, err := b.sel.Runs.Problems(t.Context(), kept)
	must(t, err)
	return kept, problems
}

func TestProblemsSolvedInEverySampleAreDropped(t *testing.T) {
	st, _ := toyRun(t)
	set, all := sevens(t, st, 6)
	unknown := append(times(7, right()), ended{outcome: agent.Unknown})
	kept, problems := filtered(t, st, set, times(8, right()), append(times(7, right()), wrong()), times(8, wrong()), unknown)
	// The stage's order, by the addresses themselves: stage 1, epoch 0.
	perm := philox.NewKey(toyRecipe(t).Seed).Perm(philox.Address{Purpose: philox.Shuffle, Stage: 1}, len(all))
	want := []problem.Problem{all[perm[1]], all[perm[2]], all[perm[3]]}
	if kept.Problems != 3 || !slices.Equal(problems, want) {
		t.Fatalf("kept %v, want %v: 7 of 8, 0 of 8 and an unknown one, in the stage's order", problems, want)
	}
}

func TestAFilterThatWouldLeaveNothingKeepsAll(t *testing.T) {
	st, _ := toyRun(t)
	set, _ := sevens(t, st, 6)
	kept, problems := filtered(t, st, set, times(8, right()), times(8, right()))
	if kept.Problems != 2 || problems[0] == problems[1] {
		t.Fatalf("kept %v, want the two that were tried", problems)
	}
}

func TestAStagesOrderTakesEveryProblemOnceAnEpoch(t *testing.T) {
	orders := map[string]bool{}
	for stage := range 3 {
		order := promptOrder{key: philox.NewKey(5), stage: stage, n: 12}
		for epoch := range 2 {
			var taken []int
			for i := range 12 {
				taken = append(taken, order.index(12*epoch+i))
			}
			orders[fmt.Sprint(taken)] = true
			if back := order.index(12 * epoch); back != taken[0] {
				t.Fatalf("ordinal %d is problem %d, then %d", 12*epoch, taken[0], back)
			}
			slices.Sort(taken)
			if !slices.Equal(taken, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
				t.Fatalf("stage %d, epoch %d takes %v", stage, epoch, taken)
			}
		}
	}
	if len(orders) != 6 {
		t.Fatalf("%d orders in 3 stages of 2 epochs, want 6", len(orders))
	}
}
