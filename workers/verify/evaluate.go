package verify

import (
	"math/big"
)

// maxFactorial bounds factorials: 200! has 1,246 bits.
const maxFactorial = 200

// evaluated computes functions of integers.
func evaluated(name string, args []fraction) (*big.Rat, bool) {
	v := make([]*big.Rat, len(args))
	for i, a := range args {
		r, ok := a.value()
		if !ok {
			return nil, false
		}
		v[i] = r
	}
	switch {
	case len(v) == 1:
		return evaluatedOne(name, v[0])
	case len(v) == 2 && name == "binom":
		if bounded(v[0]) && bounded(v[1]) {
			return new(big.Rat).SetInt(new(big.Int).Binomial(v[0].Num().Int64(), v[1].Num().Int64())), true
		}
	case len(v) > 1 && (name == "max" || name == "min"):
		best := v[0]
		for _, r := range v[1:] {
			if (r.Cmp(best) > 0) == (name == "max") {
				best = r
			}
		}
		return best, true
	}
	return nil, false
}

func bounded(r *big.Rat) bool {
	return r.IsInt() && r.Sign() >= 0 && r.Num().Cmp(big.NewInt(maxFactorial)) <= 0
}

func evaluatedOne(name string, r *big.Rat) (*big.Rat, bool) {
	switch name {
	case "abs":
		return new(big.Rat).Abs(r), true
	case "floor", "ceil":
		q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
		if name == "ceil" && m.Sign() != 0 {
			q.Add(q, big.NewInt(1))
		}
		return new(big.Rat).SetInt(q), true
	case "factorial":
		if bounded(r) {
			return new(big.Rat).SetInt(new(big.Int).MulRange(1, r.Num().Int64())), true
		}
	}
	return nil, false
}
