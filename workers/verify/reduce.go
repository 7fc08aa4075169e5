package verify

import (
	"math/big"
	"strings"
)

// reduce applies the relations between atoms: primes keep powers from 0 to below 1, i^2 = -1, sin^2 = 1 - cos^2.
func reduce(t term) ([]term, error) {
	for k, a := range t.atoms {
		switch {
		case strings.HasPrefix(a.atom, "p:") && (a.p < 0 || a.p >= a.q):
			whole := floorDiv(a.p, a.q)
			prime, _ := new(big.Int).SetString(a.atom[2:], 10)
			if int64(prime.BitLen())*max(whole, -whole) > maxBits {
				return nil, errOpen
			}
			return reduce(t.replace(k, a.p-whole*a.q, ratPower(new(big.Rat).SetInt(prime), whole)))
		case a.atom == "i" && a.q == 1 && (a.p < 0 || a.p > 1):
			sign := big.NewRat(1, 1)
			if m := ((a.p % 4) + 4) % 4; m >= 2 {
				sign.Neg(sign)
			}
			return reduce(t.replace(k, ((a.p%2)+2)%2, sign))
		case strings.HasPrefix(a.atom, "f:sin(") && a.q == 1 && a.p >= 2:
			return reduceSine(t, k)
		}
	}
	return []term{t}, nil
}

// reduceSine replaces sin^2 of atom k by 1 - cos^2 once.
func reduceSine(t term, k int) ([]term, error) {
	rest := t.replace(k, t.atoms[k].p-2, big.NewRat(1, 1))
	cosine := "f:cos(" + strings.TrimPrefix(t.atoms[k].atom, "f:sin(")
	square, err := termProduct(rest, term{coef: big.NewRat(-1, 1), atoms: []atomPower{{cosine, 2, 1}}})
	if err != nil {
		return nil, err
	}
	var out []term
	for _, part := range []term{rest, square} {
		parts, err := reduce(part)
		if err != nil || len(out) > maxTerms {
			return nil, errOpen
		}
		out = append(out, parts...)
	}
	return out, nil
}
