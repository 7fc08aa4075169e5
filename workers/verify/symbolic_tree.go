package verify

import "math/cmplx"

// tree writes a scalar as nested lists for the verifier's program, or reports that it has to stay out: a part that the program
// does not know, or a power of numbers that is too large to be computed.
func tree(n *node) ([]any, bool) {
	switch n.kind {
	case kNum:
		return []any{"number", n.rat.Num().String(), n.rat.Denom().String()}, n.rat.Num().BitLen()+n.rat.Denom().BitLen() < maxBits
	case kSym:
		return []any{"symbol", n.name}, true
	case kAdd, kMul:
		parts, ok := trees(n.args)
		return append([]any{map[kind]string{kAdd: "sum", kMul: "product"}[n.kind]}, parts...), ok
	case kPow:
		parts, ok := trees(n.args)
		return append([]any{"power"}, parts...), ok && boundedPower(n.args[0], n.args[1])
	case kFn:
		return functionTree(n)
	case kRatio:
		if len(n.args) == 2 {
			return tree(quotient(n.args[0], n.args[1]))
		}
	}
	return nil, false
}

func trees(args []*node) ([]any, bool) {
	out := make([]any, len(args))
	for i, a := range args {
		t, ok := tree(a)
		if !ok {
			return nil, false
		}
		out[i] = t
	}
	return out, true
}

func functionTree(n *node) ([]any, bool) {
	if n.name == doubleSign || n.name == "sum" || n.name == "prod" {
		return nil, false
	}
	args := n.args
	if trigonometric[n.name] && len(args) == 1 {
		args = []*node{radians(args[0])}
	}
	parts, ok := trees(args)
	if n.name == "factorial" || n.name == "binom" { // of small integers, or of variables
		for _, a := range args {
			if f, err := normalise(a); numeric(a) && (err != nil || !smallInteger(f)) {
				return nil, false
			}
		}
	}
	return []any{"function", n.name, parts}, ok
}

func smallInteger(f fraction) bool {
	v, ok := f.value()
	return ok && bounded(v)
}

// boundedPower reports whether a power cannot become a large number: the exponent has variables, or its size and the base's
// digits together stay small.
func boundedPower(base, exponent *node) bool {
	const mostTerms = 64 // of a power that is not of one number or name
	if !numeric(exponent) {
		return true
	}
	e, err := exponent.at(nil)
	if err != nil {
		return false
	}
	size := cmplx.Abs(e.mid)
	switch base.kind {
	case kNum:
		return size*float64(base.rat.Num().BitLen()+base.rat.Denom().BitLen()) <= maxBits
	case kSym:
		return size <= 1<<12
	}
	return size <= mostTerms
}
