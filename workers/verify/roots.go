package verify

import (
	"math/big"
	"strings"
)

// rootFraction takes a power that is not an integer.
func rootFraction(b fraction, r *big.Rat) (fraction, error) {
	if v, ok := b.value(); ok {
		return numberRoot(v, r)
	}
	if t, ok := b.above.single(); ok && len(t.atoms) == 1 && t.atoms[0].p == t.atoms[0].q && t.coef.Sign() > 0 && strings.HasPrefix(t.atoms[0].atom, "s:") {
		if c, ok := b.below.constant(); ok && c.Sign() > 0 { // (c x)^r = c^r x^r for a positive c
			coefficient, err := numberRoot(new(big.Rat).Quo(t.coef, c), r)
			if err != nil {
				return b, err
			}
			return fractionProduct(coefficient, whole(atomPoly(t.atoms[0].atom, r.Num().Int64(), r.Denom().Int64())))
		}
	}
	if f, ok := positiveRoot(b, r); ok {
		return f, nil
	}
	return whole(atomPoly("b:"+b.String(), r.Num().Int64(), r.Denom().Int64())), nil
}

// positiveRoot takes the root of each factor of a positive constant: sqrt(2/pi) is sqrt(2) over sqrt(pi).
func positiveRoot(b fraction, r *big.Rat) (fraction, bool) {
	t, ok := b.above.single()
	c, fine := b.below.constant()
	if !ok || !fine || new(big.Rat).Quo(t.coef, c).Sign() <= 0 {
		return b, false
	}
	out, err := numberRoot(new(big.Rat).Quo(t.coef, c), r)
	for _, a := range t.atoms {
		if a.atom != "s:pi" && a.atom != "s:e" && !strings.HasPrefix(a.atom, "p:") || err != nil {
			return b, false
		}
		e := new(big.Rat).Mul(big.NewRat(a.p, a.q), r)
		if !small(e) {
			return b, false
		}
		out, err = fractionProduct(out, whole(atomPoly(a.atom, e.Num().Int64(), e.Denom().Int64())))
	}
	return out, err == nil
}

// numberRoot splits a number into primes, whose roots are independent over the rationals.
func numberRoot(v, r *big.Rat) (fraction, error) {
	if v.Sign() == 0 && r.Sign() > 0 {
		return whole(poly{}), nil
	}
	out := whole(constantPoly(big.NewRat(1, 1)))
	if v.Sign() < 0 {
		if r.Denom().Cmp(big.NewInt(2)) != 0 {
			return out, errOpen
		}
		out = whole(atomPoly("i", 1, 1)) // (-1)^(p/2) = i^p
		var err error
		if out, err = out.power(r.Num()); err != nil {
			return out, err
		}
	}
	for sign, n := range map[int64]*big.Int{1: new(big.Int).Abs(v.Num()), -1: v.Denom()} {
		primes, err := factorise(n)
		if err != nil {
			return out, err
		}
		for prime, k := range primes {
			e := new(big.Rat).Mul(r, big.NewRat(sign*k, 1))
			if !small(e) {
				return out, errOpen
			}
			f, err := polyProduct(atomPoly("p:"+prime, e.Num().Int64(), e.Denom().Int64()), constantPoly(big.NewRat(1, 1)))
			if err != nil {
				return out, err
			}
			if out, err = fractionProduct(out, whole(f)); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// trialLimit bounds trial division: numbers below its square are split completely.
const trialLimit = 1 << 12

func factorise(n *big.Int) (map[string]int64, error) {
	out := map[string]int64{}
	if n.Sign() == 0 || n.BitLen() > 256 {
		return nil, errOpen
	}
	rest, r, q := new(big.Int).Set(n), new(big.Int), new(big.Int)
	for d := int64(2); d < trialLimit && rest.BitLen() > 1; d++ {
		for divisor := big.NewInt(d); ; {
			if q.QuoRem(rest, divisor, r); r.Sign() != 0 {
				break
			}
			rest.Set(q)
			out[divisor.String()]++
		}
	}
	if rest.BitLen() > 1 {
		if !rest.ProbablyPrime(20) {
			root := new(big.Int).Sqrt(rest)
			if new(big.Int).Mul(root, root).Cmp(rest) != 0 || !root.ProbablyPrime(20) {
				return nil, errOpen
			}
			out[root.String()] += 2
			return out, nil
		}
		out[rest.String()]++
	}
	return out, nil
}
