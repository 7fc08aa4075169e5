package model

// touchedRows are the rows of an embedding's part that can be other than +0. A sum of embeddings that begins at +0 is never -0, so the other
// rows can be left out of any sum without a change of its bits.
type touchedRows struct {
	seen []bool
	rows []int32
	all  bool
}

func (t *touchedRows) reset() {
	for _, r := range t.rows {
		t.seen[r] = false
	}
	t.rows, t.all = t.rows[:0], false
}

func (t *touchedRows) mark(ids []int32) {
	for _, id := range ids {
		if !t.seen[id] {
			t.seen[id] = true
			t.rows = append(t.rows, id)
		}
	}
}

func (t *touchedRows) add(o *touchedRows) {
	t.mark(o.rows)
	t.all = t.all || o.all
}
