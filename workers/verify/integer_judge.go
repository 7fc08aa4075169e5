package verify

import (
	"fmt"
	"math"
	"math/big"
)

// integer judges an answer against an integer. Only an exact proof of equality gives correct.
func (c *comparer) integer(want *big.Int, pred string) Verdict {
	if got, ok := Integer(pred); ok {
		return judgeInteger(want, got)
	}
	if want.BitLen() > maxBits {
		return Verdict{Wrong, PathInteger, fmt.Sprintf("%q is not an integer of %d bits", brief(pred), want.BitLen())}
	}
	a := read(pred)
	n, why := single(a.node)
	switch {
	case n == nil:
		return Verdict{Wrong, PathInteger, fmt.Sprintf("%q is not an integer: %s", brief(pred), why)}
	case n.kind == kNum && (!n.reduced || !c.options.Final):
		if !n.rat.IsInt() {
			return Verdict{Wrong, PathInteger, fmt.Sprintf("%s is not %s", brief(n.rat.RatString()), brief(want.String()))}
		}
		return judgeInteger(want, n.rat.Num())
	case c.options.Final:
		return Verdict{Wrong, PathInteger, fmt.Sprintf("%q is not written out as an integer", brief(pred))}
	case !numeric(n):
		return Verdict{Wrong, PathInteger, fmt.Sprintf("%q has variables", brief(pred))}
	case larger(n, want):
		return Verdict{Wrong, PathInteger, fmt.Sprintf("%q has more bits than %s", brief(pred), brief(want.String()))}
	}
	v := c.exactly(num(new(big.Rat).SetInt(want)), n)
	if v.Outcome != Unknown {
		v.Path = PathInteger
	}
	return v
}

func judgeInteger(want, got *big.Int) Verdict {
	if got.Cmp(want) != 0 {
		return Verdict{Wrong, PathInteger, fmt.Sprintf("%s is not %s", brief(got.String()), brief(want.String()))}
	}
	return Verdict{Correct, PathInteger, ""}
}

// single finds the one scalar that an answer names: x = 6, {6} and 6 cm are 6; 3 or 5 is not one value.
func single(n *node) (*node, string) {
	if n == nil {
		return nil, "it is not a number"
	}
	switch n.kind {
	case kRel:
		right, ok := named(n)
		if !ok {
			return nil, "it is a relation"
		}
		return single(right)
	case kSet:
		if len(n.args) == 1 {
			return single(n.args[0])
		}
		return nil, fmt.Sprintf("it is a set of %d", len(n.args))
	case kList, kTuple:
		return nil, fmt.Sprintf("it has %d values", len(n.args))
	}
	if !n.scalar() {
		return nil, "it is not a number"
	}
	return n, ""
}

// larger reports whether a power of integers is certainly larger than want in size, from a lower bound on its logarithm.
func larger(n *node, want *big.Int) bool {
	bits, ok := bitsBelow(n)
	return ok && bits > float64(want.BitLen()+1)
}

// bitsBelow returns a lower bound on log2 of the size of a product of powers of integers.
func bitsBelow(n *node) (float64, bool) {
	switch n.kind {
	case kNum:
		if n.rat.IsInt() && n.rat.Sign() != 0 {
			return float64(n.rat.Num().BitLen() - 1), true
		}
	case kMul:
		total := 0.0
		for _, a := range n.args {
			bits, ok := bitsBelow(a)
			if !ok {
				return 0, false
			}
			total += bits
		}
		return total, true
	case kPow:
		base, ok := bitsBelow(n.args[0])
		exponent, fine := bitsBelow(n.args[1])
		if ok && fine && base >= 1 && positive(n.args[1]) {
			return base * math.Exp2(min(exponent, 1000)), true
		}
	}
	return 0, false
}

// positive reports whether a product of powers of integers is certainly positive.
func positive(n *node) bool {
	switch n.kind {
	case kNum:
		return n.rat.Sign() > 0
	case kMul, kPow:
		for _, a := range n.args {
			if !positive(a) {
				return false
			}
		}
		return true
	}
	return false
}
