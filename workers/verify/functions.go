package verify

import (
	"math/big"
	"slices"
	"strings"
)

// exponential writes a power with a constant base and an open exponent: each term of the exponent is a factor.
func exponential(base string, e fraction) (fraction, error) {
	below, ok := e.below.constant()
	if !ok {
		return whole(atomPoly("e:"+base+"^"+e.String(), 1, 1)), nil
	}
	out := whole(constantPoly(big.NewRat(1, 1)))
	for _, key := range e.above.sortedKeys() {
		t := e.above[key]
		c := new(big.Rat).Quo(t.coef, below)
		if !small(c) {
			return out, errOpen
		}
		var factor fraction
		if len(t.atoms) == 0 {
			f, err := constantFactor(base, c)
			if err != nil {
				return out, err
			}
			factor = f
		} else {
			// base^(c m) is (base^(m/q))^p for c = p/q, and p is an integer
			factor = whole(atomPoly("e:"+base+"^("+t.key()+")/"+c.Denom().String(), c.Num().Int64(), 1))
		}
		var err error
		if out, err = fractionProduct(out, factor); err != nil {
			return out, err
		}
	}
	return out, nil
}

func constantFactor(base string, c *big.Rat) (fraction, error) {
	if base == "e" {
		return whole(atomPoly("s:e", c.Num().Int64(), c.Denom().Int64())), nil
	}
	v, ok := new(big.Rat).SetString(base)
	if !ok {
		return whole(atomPoly(base, c.Num().Int64(), c.Denom().Int64())), nil
	}
	if c.IsInt() {
		return numberPower(v, c.Num())
	}
	return numberRoot(v, c)
}

// generalPower handles open exponents: a positive number by its primes, anything else with the integer part split off.
func generalPower(b, e fraction) (fraction, error) {
	if t, ok := b.above.single(); ok && len(t.atoms) == 1 && b.String() == whole(atomPoly(t.atoms[0].atom, 1, 1)).String() {
		return exponential(t.atoms[0].atom, e) // x^(n+1) = x^n x
	}
	v, ok := b.value()
	if !ok || v.Sign() <= 0 {
		return whole(atomPoly("e:"+b.String()+"^"+e.String(), 1, 1)), nil
	}
	out := whole(constantPoly(big.NewRat(1, 1)))
	for sign, n := range map[int64]*big.Int{1: v.Num(), -1: v.Denom()} {
		primes, err := factorise(n)
		if err != nil {
			return out, err
		}
		for prime, k := range primes {
			scaled := fraction{e.above.scaled(big.NewRat(sign*k, 1)), e.below}
			f, err := exponential(prime, scaled)
			if err != nil {
				return out, err
			}
			if out, err = fractionProduct(out, f); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// functionFraction writes functions as atoms of their arguments' normal forms, after the identities that always hold.
func functionFraction(n *node) (fraction, error) {
	if n.name == doubleSign {
		return fraction{}, errOpen
	}
	args := make([]fraction, len(n.args))
	for i, a := range n.args {
		f, err := argumentFraction(a)
		if err != nil {
			return f, err
		}
		args[i] = f
	}
	switch n.name {
	case "sin", "cos":
		return sineFraction(n.name, n.args[0])
	case "tan", "cot", "sec", "csc":
		if len(n.args) == 1 {
			return trigonometricFraction(n.name, n.args[0])
		}
	case "exp":
		if len(n.args) == 1 {
			return powerFraction(sym("e"), n.args[0])
		}
	case "sqrt":
		if len(n.args) == 1 {
			return powerFraction(n.args[0], num(big.NewRat(1, 2)))
		}
	case "ln":
		if len(n.args) == 1 {
			return logarithm(args[0])
		}
	case "factorial", "binom", "abs", "floor", "ceil", "gcd", "lcm", "max", "min":
		if v, ok := evaluated(n.name, args); ok {
			return whole(constantPoly(v)), nil
		}
	}
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.String()
	}
	if slices.Contains([]string{"max", "min", "gcd", "lcm"}, n.name) {
		slices.Sort(texts)
	}
	text := "f:" + n.name + "(" + strings.Join(texts, ",")
	return whole(atomPoly(text+")", 1, 1)), nil
}

// argumentFraction writes an argument; what is no scalar stands for itself by its text.
func argumentFraction(a *node) (fraction, error) {
	if a.scalar() {
		return normalise(a)
	}
	if a.kind == kRel {
		text := "r:"
		for i, side := range a.args {
			f, err := argumentFraction(side)
			if err != nil {
				return f, err
			}
			if i > 0 {
				text += a.ops[i-1]
			}
			text += f.String()
		}
		return whole(atomPoly(text, 1, 1)), nil
	}
	return whole(atomPoly("t:"+a.String(), 1, 1)), nil
}

// sineFraction gives the argument a positive first coefficient: sin(-x) = -sin x, cos(-x) = cos x.
func sineFraction(name string, arg *node) (fraction, error) {
	f, err := normalise(radians(arg))
	if err != nil {
		return f, err
	}
	if len(f.above) == 0 {
		return whole(constantPoly(map[string]*big.Rat{"sin": new(big.Rat), "cos": big.NewRat(1, 1)}[name])), nil
	}
	sign := big.NewRat(1, 1)
	if f.above[f.above.sortedKeys()[0]].coef.Sign() < 0 {
		f.above = f.above.scaled(minusOne)
		if name == "sin" {
			sign = minusOne
		}
	}
	atom := whole(atomPoly("f:"+name+"("+f.String()+")", 1, 1))
	return fractionProduct(whole(constantPoly(sign)), atom)
}

// radians turns an argument in degrees into radians.
func radians(arg *node) *node {
	if !arg.degree {
		return arg
	}
	c := *arg
	c.degree = false
	return product(&c, sym("pi"), num(big.NewRat(1, 180)))
}

func trigonometricFraction(name string, arg *node) (fraction, error) {
	s, err := sineFraction("sin", arg)
	if err != nil {
		return s, err
	}
	c, err := sineFraction("cos", arg)
	if err != nil {
		return c, err
	}
	one := whole(constantPoly(big.NewRat(1, 1)))
	pair := map[string][2]fraction{"tan": {s, c}, "cot": {c, s}, "sec": {one, c}, "csc": {one, s}}[name]
	inverse, err := pair[1].inverse()
	if err != nil {
		return inverse, err
	}
	return fractionProduct(pair[0], inverse)
}

// logarithm splits positive numbers into primes: ln 12 = 2 ln 2 + ln 3.
func logarithm(f fraction) (fraction, error) {
	v, ok := f.value()
	if !ok || v.Sign() <= 0 {
		if t, single := f.above.single(); single && len(t.atoms) == 1 && t.atoms[0].atom == "s:e" && t.coef.Cmp(big.NewRat(1, 1)) == 0 {
			return whole(constantPoly(big.NewRat(t.atoms[0].p, t.atoms[0].q))), nil
		}
		return whole(atomPoly("f:ln("+f.String()+")", 1, 1)), nil
	}
	out := whole(poly{})
	for sign, n := range map[int64]*big.Int{1: v.Num(), -1: v.Denom()} {
		primes, err := factorise(n)
		if err != nil {
			return out, err
		}
		for prime, k := range primes {
			part := whole(atomPoly("f:ln("+prime+")", 1, 1).scaled(big.NewRat(sign*k, 1)))
			if out, err = fractionSum(out, part); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}
