package activities

import (
	"bytes"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
)

func TestChoosingInMemoryGivesTheBytesOfTheJournalsBatch(t *testing.T) {
	st, _ := toyRun(t)
	groups := [][]ended{append(times(5, right()), times(11, wrong())...), times(16, right()), append(times(1, right()), times(15, wrong())...)}
	stored, _ := selected(t, st, groups...)
	in := make([][]agent.Trajectory, len(groups))
	for i, g := range groups {
		for j, e := range g {
			in[i] = append(in[i], e.trajectory(30+i, j))
		}
	}
	bodies, err := Choose(toyRecipe(t), selectOf(len(groups)), in)
	must(t, err)
	if len(bodies) != 1 || !bytes.Equal(bodies[0], get(t, st, stored.Batch.Key)) {
		t.Fatalf("%d batches, want the one that SelectBatch wrote", len(bodies))
	}
	b, err := Chosen(bodies[0])
	must(t, err)
	if len(b.Sequences) != stored.Sequences || len(b.Sequences) == 0 {
		t.Errorf("%d sequences, want %d", len(b.Sequences), stored.Sequences)
	}
}
