package verify

import (
	"math/big"
	"strings"
)

// fraction is a quotient of polynomials in normal form. Two expressions whose fractions are equal when multiplied across are
// equal wherever both are defined; the converse does not hold for every expression, so a difference proves nothing.
type fraction struct{ above, below poly }

func whole(f poly) fraction { return fraction{f, constantPoly(big.NewRat(1, 1))} }

// normalise writes a scalar as a fraction. errOpen means that it does not fit the normal form or its bounds.
func normalise(n *node) (fraction, error) {
	switch n.kind {
	case kNum:
		return whole(constantPoly(n.rat)), nil
	case kSym:
		return symbolFraction(n.name)
	case kAdd:
		return fold(n.args, constantPoly(new(big.Rat)), fractionSum)
	case kMul:
		return fold(n.args, constantPoly(big.NewRat(1, 1)), fractionProduct)
	case kPow:
		return powerFraction(n.args[0], n.args[1])
	case kFn:
		return functionFraction(n)
	case kRatio:
		if len(n.args) == 2 {
			return normalise(quotient(n.args[0], n.args[1]))
		}
	}
	return fraction{}, errOpen
}

func symbolFraction(name string) (fraction, error) {
	switch name {
	case "i":
		return whole(atomPoly("i", 1, 1)), nil
	case "oo":
		return fraction{}, errOpen
	}
	return whole(atomPoly("s:"+name, 1, 1)), nil
}

func fold(args []*node, start poly, combine func(a, b fraction) (fraction, error)) (fraction, error) {
	out := whole(start)
	for _, a := range args {
		f, err := normalise(a)
		if err != nil {
			return f, err
		}
		if out, err = combine(out, f); err != nil {
			return out, err
		}
	}
	return out, nil
}

func fractionSum(a, b fraction) (fraction, error) {
	if a.below.String() == b.below.String() {
		above, err := polySum(a.above, b.above)
		return fraction{above, a.below}, err
	}
	x, err := polyProduct(a.above, b.below)
	if err != nil {
		return a, err
	}
	y, err := polyProduct(b.above, a.below)
	if err != nil {
		return a, err
	}
	below, err := polyProduct(a.below, b.below)
	if err != nil {
		return a, err
	}
	above, err := polySum(x, y)
	return fraction{above, below}, err
}

func fractionProduct(a, b fraction) (fraction, error) {
	above, err := polyProduct(a.above, b.above)
	if err != nil {
		return a, err
	}
	below, err := polyProduct(a.below, b.below)
	if err != nil {
		return a, err
	}
	return fraction{above, below}.folded()
}

// inverse turns a fraction over.
func (f fraction) inverse() (fraction, error) {
	if len(f.above) == 0 {
		return f, errOpen // division by zero
	}
	return fraction{f.below, f.above}.folded()
}

// folded moves a denominator of one term into the numerator, where its atoms may have negative powers.
func (f fraction) folded() (fraction, error) {
	t, ok := f.below.single()
	if !ok {
		return f, nil
	}
	inverse := term{coef: new(big.Rat).Inv(t.coef)}
	for _, a := range t.atoms {
		if !strings.HasPrefix(a.atom, "s:") && !strings.HasPrefix(a.atom, "p:") && a.atom != "i" {
			return f, nil
		}
		inverse.atoms = append(inverse.atoms, atomPower{a.atom, -a.p, a.q})
	}
	above, err := polyProduct(f.above, poly{"": inverse})
	return whole(above), err
}

// String is a text that is the same for fractions of the same form. Fractions of different forms may still be equal.
func (f fraction) String() string {
	if len(f.below) > 0 {
		keys := f.below.sortedKeys()
		lead := new(big.Rat).Inv(f.below[keys[0]].coef)
		f = fraction{f.above.scaled(lead), f.below.scaled(lead)}
	}
	return f.above.String() + "/" + f.below.String()
}

// powerFraction handles integer powers of everything, rational powers of numbers and variables, and general powers as atoms.
func powerFraction(base, exponent *node) (fraction, error) {
	e, err := normalise(exponent)
	if err != nil {
		return e, err
	}
	r, rational := e.value()
	if base.kind == kSym && base.name == "e" && !rational {
		return exponential("e", e)
	}
	b, err := normalise(base)
	if err != nil {
		return b, err
	}
	switch {
	case !rational:
		return generalPower(b, e)
	case r.IsInt():
		return b.power(r.Num())
	case !small(r):
		return b, errOpen
	}
	return rootFraction(b, r)
}

// value returns a constant fraction's value.
func (f fraction) value() (*big.Rat, bool) {
	below, ok := f.below.constant()
	above, fine := f.above.constant()
	if !ok || !fine || below.Sign() == 0 {
		return nil, false
	}
	return new(big.Rat).Quo(above, below), true
}

func (f fraction) power(exponent *big.Int) (fraction, error) {
	if v, ok := f.value(); ok {
		return numberPower(v, exponent)
	}
	if !exponent.IsInt64() || exponent.BitLen() > 12 {
		return f, errOpen
	}
	n := exponent.Int64()
	var err error
	if n < 0 {
		if f, err = f.inverse(); err != nil {
			return f, err
		}
		n = -n
	}
	if t, ok := f.above.single(); ok && len(f.below) == 1 {
		if g, ok := f.termPower(t, n); ok {
			return g, nil
		}
	}
	above, err := polyPower(f.above, n)
	if err != nil {
		return f, err
	}
	below, err := polyPower(f.below, n)
	if err != nil {
		return f, err
	}
	return fraction{above, below}.folded()
}

// termPower multiplies the exponents of a term of variables.
func (f fraction) termPower(t term, n int64) (fraction, bool) {
	if c, ok := f.below.constant(); !ok || c.Cmp(big.NewRat(1, 1)) != 0 || t.coef.Num().BitLen()*int(n) > maxBits {
		return f, false
	}
	out := term{coef: ratPower(t.coef, n)}
	for _, a := range t.atoms {
		r := new(big.Rat).Mul(big.NewRat(a.p, a.q), big.NewRat(n, 1))
		if !strings.HasPrefix(a.atom, "s:") || !small(r) {
			return f, false
		}
		if r.Sign() != 0 {
			out.atoms = append(out.atoms, atomPower{a.atom, r.Num().Int64(), r.Denom().Int64()})
		}
	}
	return whole(poly{out.key(): out}), true
}

// numberPower computes a power whose size is known to be bounded before it is computed.
func numberPower(v *big.Rat, exponent *big.Int) (fraction, error) {
	one := v.IsInt() && v.Num().CmpAbs(big.NewInt(1)) == 0
	bits := int64(v.Num().BitLen() + v.Denom().BitLen())
	switch {
	case v.Sign() == 0 && exponent.Sign() <= 0:
		return fraction{}, errOpen
	case v.Sign() == 0 || one && exponent.Bit(0) == 0:
		return whole(constantPoly(new(big.Rat).Abs(v))), nil
	case one:
		return whole(constantPoly(v)), nil
	case !exponent.IsInt64() || exponent.BitLen() > 16 || bits*max(exponent.Int64(), -exponent.Int64()) > maxBits:
		return fraction{}, errOpen
	}
	return whole(constantPoly(ratPower(v, exponent.Int64()))), nil
}
