package verify

// collections compares tuples, sets and lists. A tuple has an order; a list without brackets and a set have none. Where one
// side has brackets and the other has not, the reference decides: an ordered reference is compared in the order written.
func (c *comparer) collections(gold, pred *node) Verdict {
	switch {
	case gold.kind == kTuple && pred.kind == kTuple:
		return c.tuples(gold, pred)
	case gold.kind == kTuple && pred.kind == kMatrix, gold.kind == kMatrix && pred.kind == kTuple:
		return c.vectors(gold, pred)
	case gold.kind == kTuple && collection(pred):
		return c.inOrder(gold, pred)
	case collection(gold) && collection(pred):
		return c.members(gold.args, pred.args)
	case collection(gold) && len(gold.args) == 1 && gold.kind != kTuple:
		return c.equal(gold.args[0], pred)
	case collection(pred) && len(pred.args) == 1 && pred.kind != kTuple:
		return c.equal(gold, pred.args[0])
	case collection(gold):
		return wrong(PathSet, "one value where the reference has %d", len(gold.args))
	}
	return wrong(PathSet, "%d values where the reference has one", len(pred.args))
}

// tuples compares in order; of two parts the brackets count, because a pair may be an interval.
func (c *comparer) tuples(gold, pred *node) Verdict {
	if len(gold.args) != len(pred.args) {
		return wrong(PathTuple, "%d parts, not %d", len(pred.args), len(gold.args))
	}
	path := PathTuple
	if len(gold.args) == 2 {
		if gold.open != pred.open || gold.close != pred.close {
			return wrong(PathInterval, "%c...%c is not %c...%c", pred.open, pred.close, gold.open, gold.close)
		}
		if gold.open != '(' || gold.close != ')' {
			path = PathInterval
		}
	}
	return all(path, len(gold.args), func(i int) Verdict { return c.equal(gold.args[i], pred.args[i]) })
}

func (c *comparer) inOrder(gold, pred *node) Verdict {
	if len(gold.args) != len(pred.args) {
		return wrong(PathTuple, "%d parts, not %d", len(pred.args), len(gold.args))
	}
	return all(PathTuple, len(gold.args), func(i int) Verdict { return c.equal(gold.args[i], pred.args[i]) })
}

// vectors compares a tuple with a matrix of one row or column.
func (c *comparer) vectors(gold, pred *node) Verdict {
	m, t := gold, pred
	if m.kind != kMatrix {
		m, t = pred, gold
	}
	if m.cols != 1 && m.cols != len(m.args) || len(m.args) != len(t.args) {
		return wrong(PathMatrix, "a matrix and a tuple of different shapes")
	}
	return all(PathMatrix, len(gold.args), func(i int) Verdict { return c.equal(gold.args[i], pred.args[i]) })
}

// members compares as sets: everything on one side has its equal on the other.
func (c *comparer) members(gold, pred []*node) Verdict {
	if len(gold)*len(pred) > maxComparisons {
		return unknown(PathSet, "sets of %d and %d members are not compared", len(gold), len(pred))
	}
	if v := c.covered(gold, pred, false); v.Outcome == Wrong {
		return v
	} else if w := c.covered(pred, gold, true); w.Outcome != Correct {
		return w
	} else {
		return v
	}
}

// covered finds for each of these an equal among those.
func (c *comparer) covered(these, those []*node, swapped bool) Verdict {
	return all(PathSet, len(these), func(i int) Verdict {
		best := wrong(PathSet, "nothing equals %s", these[i].show())
		for _, other := range those {
			a, b := these[i], other
			if swapped {
				a, b = b, a
			}
			switch v := c.equal(a, b); v.Outcome {
			case Correct:
				return v
			case Unknown:
				best = v
			}
		}
		return best
	})
}
