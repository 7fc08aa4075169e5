package verify

import (
	"errors"
	"math/big"
	"sort"
	"strconv"
	"strings"
)

const (
	// maxTerms, maxProducts and maxPower bound polynomials while they are multiplied out: (a+b+c)^20 still fits, and no answer
	// costs more than some tenths of a second.
	maxTerms    = 400
	maxProducts = 1 << 13
	maxPower    = 32
	// maxBits bounds exact numbers. 9**9**9 has 1.2 billion bits and is never computed.
	maxBits = 1 << 15
)

// errOpen means that the normal form does not reach: nothing follows for equality.
var errOpen = errors.New("beyond the normal form")

// atomPower is a power p/q of an atom. Atoms are variables ("s:x"), primes ("p:2"), the imaginary unit ("i"), and other parts
// by their normal form ("f:sin(...)", "b:..." for the base of a root, "e:..." for exponentials).
type atomPower struct {
	atom string
	p, q int64 // q > 0, lowest terms, p != 0
}

type term struct {
	coef  *big.Rat
	atoms []atomPower // sorted by atom, each once
}

// poly is a sum of terms, by the key of their atoms. The zero polynomial is empty.
type poly map[string]term

func constantPoly(r *big.Rat) poly {
	if r.Sign() == 0 {
		return poly{}
	}
	return poly{"": term{coef: r}}
}

func atomPoly(atom string, p, q int64) poly {
	t := term{coef: big.NewRat(1, 1), atoms: []atomPower{{atom, p, q}}}
	return poly{t.key(): t}
}

func (t term) key() string {
	var b strings.Builder
	for _, a := range t.atoms {
		b.WriteString(a.atom)
		b.WriteByte('^')
		b.WriteString(strconv.FormatInt(a.p, 10))
		b.WriteByte('/')
		b.WriteString(strconv.FormatInt(a.q, 10))
		b.WriteByte(';')
	}
	return b.String()
}

// add adds t to the polynomial in place.
func (f poly) add(t term) error {
	if t.coef.Num().BitLen()+t.coef.Denom().BitLen() > maxBits {
		return errOpen
	}
	k := t.key()
	old, ok := f[k]
	if ok {
		t.coef = new(big.Rat).Add(old.coef, t.coef)
	}
	if t.coef.Sign() == 0 {
		delete(f, k)
		return nil
	}
	f[k] = t
	if len(f) > maxTerms {
		return errOpen
	}
	return nil
}

func polySum(a, b poly) (poly, error) {
	out := make(poly, len(a)+len(b))
	for _, f := range []poly{a, b} {
		for _, t := range f {
			if err := out.add(t); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func polyProduct(a, b poly) (poly, error) {
	out := poly{}
	if len(a)*len(b) > maxProducts {
		return nil, errOpen
	}
	for _, x := range a {
		for _, y := range b {
			t, err := termProduct(x, y)
			if err != nil {
				return nil, err
			}
			parts, err := reduce(t)
			if err != nil {
				return nil, err
			}
			for _, part := range parts {
				if err := out.add(part); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

func termProduct(x, y term) (term, error) {
	out := term{coef: new(big.Rat).Mul(x.coef, y.coef)}
	i, j := 0, 0
	for i < len(x.atoms) || j < len(y.atoms) {
		switch {
		case j == len(y.atoms) || i < len(x.atoms) && x.atoms[i].atom < y.atoms[j].atom:
			out.atoms = append(out.atoms, x.atoms[i])
			i++
		case i == len(x.atoms) || y.atoms[j].atom < x.atoms[i].atom:
			out.atoms = append(out.atoms, y.atoms[j])
			j++
		default:
			merged := new(big.Rat).Add(big.NewRat(x.atoms[i].p, x.atoms[i].q), big.NewRat(y.atoms[j].p, y.atoms[j].q))
			if !small(merged) {
				return out, errOpen
			}
			if merged.Sign() != 0 {
				out.atoms = append(out.atoms, atomPower{x.atoms[i].atom, merged.Num().Int64(), merged.Denom().Int64()})
			}
			i, j = i+1, j+1
		}
	}
	return out, nil
}

// small bounds exponents.
func small(r *big.Rat) bool {
	const most = 1 << 12
	return r.Num().BitLen() < 14 && r.Denom().BitLen() < 14 && r.Num().Int64() < most && r.Num().Int64() > -most
}

// replace gives atom k the power p and multiplies the coefficient.
func (t term) replace(k int, p int64, by *big.Rat) term {
	out := term{coef: new(big.Rat).Mul(t.coef, by)}
	for j, a := range t.atoms {
		if j != k {
			out.atoms = append(out.atoms, a)
		} else if p != 0 {
			r := big.NewRat(p, a.q)
			out.atoms = append(out.atoms, atomPower{a.atom, r.Num().Int64(), r.Denom().Int64()})
		}
	}
	return out
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func ratPower(r *big.Rat, n int64) *big.Rat {
	e := big.NewInt(max(n, -n))
	out := new(big.Rat).SetFrac(new(big.Int).Exp(r.Num(), e, nil), new(big.Int).Exp(r.Denom(), e, nil))
	if n < 0 {
		out.Inv(out)
	}
	return out
}

func polyPower(f poly, n int64) (poly, error) {
	if n > maxPower {
		return nil, errOpen
	}
	out := constantPoly(big.NewRat(1, 1))
	var err error
	for range n {
		if out, err = polyProduct(out, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// constant returns the value of a polynomial without atoms.
func (f poly) constant() (*big.Rat, bool) {
	switch len(f) {
	case 0:
		return new(big.Rat), true
	case 1:
		t, ok := f[""]
		return t.coef, ok
	}
	return nil, false
}

// single returns the only term.
func (f poly) single() (term, bool) {
	if len(f) == 1 {
		for _, t := range f {
			return t, true
		}
	}
	return term{}, false
}

func (f poly) sortedKeys() []string {
	keys := make([]string, 0, len(f))
	for k := range f {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (f poly) String() string {
	var b strings.Builder
	for _, k := range f.sortedKeys() {
		b.WriteString(f[k].coef.RatString())
		b.WriteByte('*')
		b.WriteString(k)
		b.WriteByte('+')
	}
	return b.String()
}

func (f poly) scaled(by *big.Rat) poly {
	out := make(poly, len(f))
	for k, t := range f {
		out[k] = term{coef: new(big.Rat).Mul(t.coef, by), atoms: t.atoms}
	}
	return out
}
