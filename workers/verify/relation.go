package verify

import (
	"slices"
)

// named returns the value that a relation gives to a name: the right side of x = 5 + 6 = 11. A value before an approximation
// counts for the approximation. ok is false for relations that do not name a value.
func named(n *node) (*node, bool) {
	sides, ops := n.args, n.ops
	if i := slices.Index(ops, "≈"); i >= 0 && (i > 0 || !nameable(sides[0])) {
		sides, ops = sides[:i+1], ops[:i]
	}
	for i, op := range ops {
		if op != "=" && (op != "≈" || i > 0) {
			return nil, false
		}
	}
	last := sides[len(sides)-1]
	if len(sides) == 1 || nameable(sides[0]) || valuesOnly(sides) {
		return last, true
	}
	return nil, false
}

// defined returns the last side of a chain of equations.
func defined(n *node) (*node, bool) {
	if right, ok := named(n); ok {
		return right, true
	}
	return n.args[len(n.args)-1], !slices.ContainsFunc(n.ops, func(op string) bool { return op != "=" })
}

// valuesOnly reports whether all sides are numbers, as in a computation that was written out.
func valuesOnly(sides []*node) bool {
	for i, s := range sides {
		if !s.scalar() || !numeric(s) || i > 0 && differ(sides[0], s) {
			return false
		}
	}
	return true
}

// nameable reports whether a left side is a name: a variable, a product of variables as in AB, f(x), a ratio or tuple of names,
// a marked name as in \angle ABC.
func nameable(n *node) bool {
	switch n.kind {
	case kSym:
		return !constant(n.name) || n.name == "i" || n.name == "e"
	case kFn:
		return true
	case kMul:
		if len(n.args) == 2 && n.args[1].kind == kPow && n.args[1].args[1].kind == kNum && n.args[1].args[1].rat.Cmp(minusOne) == 0 {
			return nameable(n.args[0]) && nameable(n.args[1].args[0])
		}
		for _, a := range n.args {
			if a.kind != kSym && a.kind != kFn {
				return false
			}
		}
		return true
	case kTuple, kRatio, kList:
		for _, a := range n.args {
			if !nameable(a) {
				return false
			}
		}
		return true
	}
	return false
}

// relations compares two relations.
func (c *comparer) relations(gold, pred *node) Verdict {
	x, ok := defined(gold)
	y, fine := defined(pred)
	if ok && fine {
		if v, done := c.assignments(gold.args[0], x, pred.args[0], y); done {
			return v
		}
	}
	if memberOf(gold) && memberOf(pred) {
		return c.equal(gold.args[1], pred.args[1])
	}
	if len(gold.ops) == 1 && len(pred.ops) == 1 {
		if v := c.single(gold, pred); v.Outcome != Unknown {
			return v
		}
	}
	if v := c.realSets(gold, pred); v.Outcome != Unknown {
		if v.Outcome == Correct && !sameSubject(gold, pred) {
			return wrong(PathRelation, "the relations are about different variables")
		}
		return v
	}
	if disagree(gold, pred) {
		return wrong(PathRelation, "one relation holds where the other does not")
	}
	return unknown(PathRelation, "no proof that %s is %s or that it is not", pred.show(), gold.show())
}

func memberOf(n *node) bool { return n.kind == kRel && len(n.ops) == 1 && n.ops[0] == "∈" }

// assignments compares x = a with y = b. Functions may have parameters of other names.
func (c *comparer) assignments(goldName, gold, predName, pred *node) (Verdict, bool) {
	if goldName.String() == predName.String() && !nameable(goldName) {
		v := c.equal(gold, pred)
		return v, v.Outcome == Correct || v.Outcome == Wrong && !shares(goldName, gold, pred)
	}
	if !nameable(goldName) || !nameable(predName) {
		if !nameable(goldName) && !nameable(predName) && numeric(goldName) && numeric(predName) {
			return c.equal(gold, pred), true
		}
		return Verdict{}, false
	}
	if goldName.kind == kFn && predName.kind == kFn && goldName.name == predName.name && len(goldName.args) == len(predName.args) {
		for i, a := range predName.args {
			if b := goldName.args[i]; a.kind == kSym && b.kind == kSym {
				pred, predName = pred.substitute(a.name, b.name), predName.substitute(a.name, b.name)
			}
		}
	}
	if goldName.String() == predName.String() {
		v := c.equal(gold, pred)
		return v, v.Outcome == Correct || !shares(goldName, gold, pred)
	}
	if numeric(gold) && numeric(pred) && gold.scalar() && pred.scalar() {
		return wrong(PathEquation, "%s is named, not %s", predName.show(), goldName.show()), true
	}
	return Verdict{}, false
}

// shares reports whether a variable of the left side is on a right side too, so that the right sides do not decide.
func shares(left *node, right ...*node) bool {
	names := map[string]bool{}
	left.symbols(names)
	if left.kind == kFn { // f(x) = x + 1 defines f
		names = map[string]bool{left.name: true}
	}
	for _, r := range right {
		if !r.walk(func(m *node) bool { return m.kind != kSym && m.kind != kFn || !names[m.name] }) {
			return true
		}
	}
	return false
}

// relationAndValue compares a relation with something else: a condition with the set of its solutions.
func (c *comparer) relationAndValue(gold, pred *node) Verdict {
	rel, other := gold, pred
	if rel.kind != kRel {
		rel, other = pred, gold
	}
	if memberOf(rel) && other.kind != kRel {
		if rel == gold {
			return c.equal(rel.args[1], other)
		}
		return c.equal(other, rel.args[1])
	}
	if collection(other) || other.kind == kUnion {
		return c.realSets(gold, pred)
	}
	return wrong(PathType, "a relation is not a value")
}

// flipped holds the relation that says the same with its sides exchanged.
var flipped = map[string]string{"<": ">", ">": "<", "≤": "≥", "≥": "≤", "=": "=", "≠": "≠"}

// single compares relations of two sides by what is left after subtracting: equal up to a factor, which has to be positive for
// inequalities of one direction.
func (c *comparer) single(gold, pred *node) Verdict {
	sign := int64(0)
	symmetric := gold.ops[0] == "=" || gold.ops[0] == "≠"
	switch {
	case gold.ops[0] == "∈" || pred.ops[0] == "∈" || flipped[gold.ops[0]] == "" || flipped[pred.ops[0]] == "":
		return unknown(PathRelation, "not an equation or inequality")
	case pred.ops[0] == gold.ops[0]:
		sign = 1
	case pred.ops[0] == flipped[gold.ops[0]]:
		sign = -1
	default:
		return unknown(PathRelation, "%s is another relation than %s", pred.ops[0], gold.ops[0])
	}
	for _, side := range []*node{gold.args[0], gold.args[1], pred.args[0], pred.args[1]} {
		if !side.scalar() {
			return unknown(PathRelation, "a side is not a value")
		}
	}
	f, err := normalise(sum(gold.args[0], negated(gold.args[1])))
	g, fail := normalise(sum(pred.args[0], negated(pred.args[1])))
	if err != nil || fail != nil {
		return unknown(PathRelation, "beyond the normal form")
	}
	ratio, ok := proportion(f, g)
	switch {
	case ok && symmetric, ok && ratio.Sign()*int(sign) > 0:
		return correct(PathEquation)
	case apart(f, g): // for inequalities: where one changes its truth the other does not
		return wrong(PathEquation, "where the sides of one are equal those of the other are not")
	}
	return unknown(PathRelation, "no proof")
}

// sameSubject reports whether two relations have the same variables.
func sameSubject(gold, pred *node) bool {
	a, b := map[string]bool{}, map[string]bool{}
	gold.symbols(a)
	pred.symbols(b)
	if len(a) != len(b) {
		return false
	}
	for name := range a {
		if !b[name] {
			return false
		}
	}
	return true
}
