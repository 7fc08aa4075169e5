package verify

import (
	"math/big"
	"strings"
)

// proportion returns the constant f/g for proportional fractions that are not zero.
func proportion(f, g fraction) (*big.Rat, bool) {
	a, err := polyProduct(f.above, g.below)
	if err != nil {
		return nil, false
	}
	b, err := polyProduct(g.above, f.below)
	if err != nil || len(a) != len(b) || len(a) == 0 {
		return nil, false
	}
	key := a.sortedKeys()[0]
	other, ok := b[key]
	if !ok {
		return nil, false
	}
	ratio := new(big.Rat).Quo(a[key].coef, other.coef)
	d, err := polySum(a, b.scaled(new(big.Rat).Neg(ratio)))
	return ratio, err == nil && len(d) == 0
}

// apart reports whether a point solves f = 0 and not g = 0. It looks for one by solving for a variable in which f is linear.
func apart(f, g fraction) bool {
	if !polynomial(f) || !polynomial(g) {
		return false
	}
	return solvedApart(f.above, g.above) || solvedApart(g.above, f.above)
}

// polynomial reports whether a fraction is a polynomial in variables with rational coefficients.
func polynomial(f fraction) bool {
	if _, ok := f.below.constant(); !ok {
		return false
	}
	for _, t := range f.above {
		for _, a := range t.atoms {
			if !strings.HasPrefix(a.atom, "s:") || a.q != 1 || a.p < 0 || constant(a.atom[2:]) {
				return false
			}
		}
	}
	return true
}

func solvedApart(f, g poly) bool {
	for _, v := range variablesOf(f) {
		for k := range int64(3) {
			at := map[string]*big.Rat{}
			for i, w := range append(variablesOf(f), variablesOf(g)...) {
				at[w] = big.NewRat(2*int64(i)+3+k*7, int64(i)+2+k)
			}
			if x, ok := linearRoot(f, v, at); ok {
				at[v] = x
				if value(g, at).Sign() != 0 {
					return true
				}
			}
		}
	}
	return false
}

// linearRoot solves f = 0 for v, where f is linear in v, at the values of the other variables.
func linearRoot(f poly, v string, at map[string]*big.Rat) (*big.Rat, bool) {
	slope, rest := new(big.Rat), new(big.Rat)
	for _, t := range f {
		x := new(big.Rat).Set(t.coef)
		power := int64(0)
		for _, a := range t.atoms {
			if a.atom == v {
				power = a.p
				continue
			}
			x.Mul(x, ratPower(at[a.atom], a.p))
		}
		switch power {
		case 0:
			rest.Add(rest, x)
		case 1:
			slope.Add(slope, x)
		default:
			return nil, false
		}
	}
	if slope.Sign() == 0 {
		return nil, false
	}
	return rest.Neg(rest.Quo(rest, slope)), true
}

// value evaluates a polynomial in variables.
func value(f poly, at map[string]*big.Rat) *big.Rat {
	out := new(big.Rat)
	for _, t := range f {
		x := new(big.Rat).Set(t.coef)
		for _, a := range t.atoms {
			x.Mul(x, ratPower(at[a.atom], a.p))
		}
		out.Add(out, x)
	}
	return out
}

// variablesOf lists the atoms of a polynomial, each once.
func variablesOf(f poly) []string {
	var out []string
	seen := map[string]bool{}
	for _, key := range f.sortedKeys() {
		for _, a := range f[key].atoms {
			if !seen[a.atom] {
				seen[a.atom] = true
				out = append(out, a.atom)
			}
		}
	}
	return out
}

// disagree reports whether two relations between real values certainly differ in truth at some point, negative values included.
func disagree(gold, pred *node) bool {
	free := map[string]bool{}
	gold.symbols(free)
	pred.symbols(free)
	names := sortedNames(free)
	for k := range trials {
		at := point{openBase: 10}
		for i, name := range names {
			values := domains[(k+i*(k/len(domains)))%len(domains)]
			at[name] = values[(k+i)%len(values)] * []float64{1, 10, 100}[k%3]
		}
		a, known := holds(gold, at)
		b, sure := holds(pred, at)
		if known && sure && a != b {
			return true
		}
	}
	return false
}

// trials is how many points are tried to find one where only one of two relations holds.
const trials = 48

// holds evaluates a chain of relations at a point; known is false where an error bound does not allow an answer.
func holds(n *node, at point) (truth, known bool) {
	truth = true
	for i, op := range n.ops {
		if !n.args[i].scalar() || !n.args[i+1].scalar() {
			return false, false
		}
		a, err := n.args[i].at(at)
		b, fail := n.args[i+1].at(at)
		if err != nil || fail != nil || !a.real || !b.real || !a.differs(b) {
			return false, false
		}
		less := real(a.mid) < real(b.mid)
		switch op {
		case "<", "≤":
			truth = truth && less
		case ">", "≥":
			truth = truth && !less
		case "=":
			truth = false
		case "≠":
		default:
			return false, false
		}
	}
	return truth, true
}
