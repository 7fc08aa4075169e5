package verify

import (
	"math"
	"math/big"
)

// condition reads what a chain of relations says about its one variable x, or |x|.
func condition(n *node) ([]span, bool) {
	if memberOf(n) {
		return spans(n.args[1])
	}
	free := map[string]bool{}
	n.symbols(free)
	if len(free) != 1 {
		return nil, false
	}
	out := []span{everything}
	for i, op := range n.ops {
		s, ok := oneSided(n.args[i], op, n.args[i+1])
		if !ok {
			return nil, false
		}
		out = intersection(out, s)
	}
	return out, true
}

// oneSided reads one relation between a side with the variable and a side without.
func oneSided(left *node, op string, right *node) ([]span, bool) {
	if numeric(left) {
		left, right, op = right, left, flipped[op]
	}
	if !left.scalar() || !right.scalar() || !numeric(right) || flipped[op] == "" {
		return nil, false
	}
	if left.kind == kFn && left.name == "abs" && len(left.args) == 1 {
		inner, ok := oneSided(left.args[0], op, right)
		outer, fine := oneSided(left.args[0], flipped[op], negated(right))
		if v, real := realValue(right); !ok || !fine || !real || v < 0 {
			return nil, false
		}
		if op == "<" || op == "≤" || op == "≠" {
			return intersection(inner, outer), true
		}
		return append(inner, outer...), true
	}
	bound, flip, ok := solved(left, right)
	if !ok {
		return nil, false
	}
	if flip {
		op = flipped[op]
	}
	v, real := realValue(bound)
	below, above := span{minusInfinity, bound, math.Inf(-1), v, true, true}, span{bound, infinity, v, math.Inf(1), true, true}
	switch op {
	case "≤":
		below.openHigh = false
	case "≥":
		above.openLow = false
	}
	switch op {
	case "<", "≤":
		return []span{below}, real
	case ">", "≥":
		return []span{above}, real
	case "≠":
		return []span{below, above}, real
	}
	return []span{{bound, bound, v, v, false, false}}, real
}

// solved returns the bound on the variable that makes both sides equal, for a side a x + b; flip says that a is negative.
func solved(left, right *node) (bound *node, flip, ok bool) {
	if left.kind == kSym || left.kind == kFn {
		return right, false, true
	}
	f, err := normalise(left)
	if err != nil || !polynomial(f) {
		return nil, false, false
	}
	vars := variablesOf(f.above)
	if len(vars) != 1 {
		return nil, false, false
	}
	below, _ := f.below.constant()
	at := map[string]*big.Rat{vars[0]: new(big.Rat)}
	root, linear := linearRoot(f.above, vars[0], at)
	if !linear {
		return nil, false, false
	}
	b := new(big.Rat).Quo(value(f.above, at), below)
	a := new(big.Rat).Neg(new(big.Rat).Quo(b, nonZero(root)))
	if root.Sign() == 0 {
		at[vars[0]] = big.NewRat(1, 1)
		a = new(big.Rat).Quo(value(f.above, at), below)
	}
	return product(sum(right, num(b.Neg(b))), num(new(big.Rat).Inv(a))), a.Sign() < 0, true
}

func nonZero(r *big.Rat) *big.Rat {
	if r.Sign() == 0 {
		return unity
	}
	return r
}
