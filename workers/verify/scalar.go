package verify

import (
	"math"
	"math/big"
	"regexp"
	"sort"
)

// decimalCommaForm is a number with a decimal comma.
var decimalCommaForm = regexp.MustCompile(`^([+-]?\d+),(\d+)$`)

// scalars compares two values with what stands behind them: units, degrees, percent signs.
func (c *comparer) scalars(gold, pred *node) Verdict {
	factor, ok := unitFactor(pred.unit, gold.unit)
	if !ok {
		return wrong(PathUnit, "%s is not a unit of what %s measures", pred.unit, gold.unit)
	}
	if factor.Cmp(unity) != 0 {
		pred = product(num(factor), pred)
	}
	switch {
	case gold.degree != pred.degree && (holdsPi(gold) || holdsPi(pred)):
		return c.exactly(radians(gold), radians(pred))
	case gold.percent != pred.percent:
		return c.percents(gold, pred)
	}
	return c.exactly(gold, pred)
}

var unity = big.NewRat(1, 1)

func holdsPi(n *node) bool {
	return !n.walk(func(m *node) bool { return m.kind != kSym || m.name != "pi" })
}

// percents compares a value with a percentage: 20% is 0.2, and it is 20 where the sign was left out.
func (c *comparer) percents(gold, pred *node) Verdict {
	if v := c.exactly(gold, pred); v.Outcome == Correct {
		return v
	}
	hundredth := num(big.NewRat(1, 100))
	if gold.percent {
		return c.exactly(product(gold, hundredth), pred)
	}
	return c.exactly(gold, product(pred, hundredth))
}

// exactly compares two values: by their form, as exact numbers, in normal form, as a rounded decimal, at points.
func (c *comparer) exactly(gold, pred *node) Verdict {
	if gold.String() == pred.String() {
		return gold.itself()
	}
	f, errGold := c.normal(gold)
	g, errPred := c.normal(pred)
	if c.effort += f.size() * g.size() / 64; c.effort > maxEffort {
		return unknown(PathAlgebra, "too much algebra to compare %s with %s", pred.show(), gold.show())
	}
	if errGold == nil && errPred == nil {
		v, ok := f.value()
		w, fine := g.value()
		if ok && fine {
			return c.rationals(gold, pred, v, w)
		}
		if same(f, g) {
			return correct(PathAlgebra)
		}
	}
	if v, ok := c.decimals(gold, pred); ok {
		return v
	}
	if differ(gold, pred) {
		return wrong(PathNumeric, "%s has another value than %s", pred.show(), gold.show())
	}
	q := question{gold, pred}
	if c.proved[q.pair()] {
		return correct(PathSymbolic)
	}
	c.open = append(c.open, q)
	return unknown(PathNumeric, "no proof that %s is %s or that it is not", pred.show(), gold.show())
}

// form is a normal form, or why there is none.
type form struct {
	fraction
	err error
}

// normal returns the normal form of a scalar, which is computed once.
func (c *comparer) normal(n *node) (fraction, error) {
	if f, ok := c.forms[n]; ok {
		return f.fraction, f.err
	}
	if c.effort > maxEffort {
		return fraction{}, errOpen
	}
	f, err := normalise(n)
	c.effort += f.size() * f.size() / 16
	if err != nil {
		c.effort += maxEffort / 64 // it may have failed at its bounds
	}
	if c.forms == nil {
		c.forms = map[*node]form{}
	}
	c.forms[n] = form{f, err}
	return f, err
}

// size is the number of terms.
func (f fraction) size() int { return len(f.above) + len(f.below) }

// maxEffort bounds the algebra of one judgement, in products of terms: sets of hundreds of usual answers stay far below it,
// and a set of powers that have to be multiplied out ends within seconds.
const maxEffort = 1 << 16

func (c *comparer) rationals(gold, pred *node, v, w *big.Rat) Verdict {
	if v.Cmp(w) == 0 {
		return correct(PathRational)
	}
	if (written(gold) || written(pred)) && (!v.IsInt() || c.compat) {
		distance := new(big.Rat).Sub(v, w)
		f, _ := distance.Float64()
		size, _ := v.Float64()
		if c.close(f, size) {
			return correct(PathDecimal)
		}
		return wrong(PathDecimal, "%s differs from %s at %d decimals", pred.show(), gold.show(), c.places())
	}
	return wrong(PathRational, "%s is not %s", brief(w.RatString()), brief(v.RatString()))
}

// same reports whether two fractions are equal when multiplied across.
func same(f, g fraction) bool {
	a, err := polyProduct(f.above, g.below)
	if err != nil {
		return false
	}
	b, err := polyProduct(g.above, f.below)
	if err != nil {
		return false
	}
	d, err := polySum(a, b.scaled(minusOne))
	return err == nil && len(d) == 0
}

// written reports whether a value is written as one decimal fraction.
func written(n *node) bool { return n.kind == kNum && n.decimal }

func (c *comparer) places() int {
	if c.options.Decimals > 0 {
		return c.options.Decimals
	}
	return 6
}

// close says whether a distance vanishes when both values are rounded; a small value counts by its own size as well.
func (c *comparer) close(distance, size float64) bool {
	unit := math.Pow10(-c.places())
	return math.Abs(distance) <= unit/2*(1+1e-9) && math.Abs(distance) <= 100*unit*math.Abs(size)
}

// decimals compares a decimal fraction with a value that is not rational.
func (c *comparer) decimals(gold, pred *node) (Verdict, bool) {
	if written(gold) == written(pred) || !numeric(gold) || !numeric(pred) || !c.compat && gold.kind == kNum && gold.rat.IsInt() {
		return Verdict{}, false
	}
	a, err := gold.at(nil)
	b, fail := pred.at(nil)
	if err != nil || fail != nil || !a.real || !b.real || a.radius+b.radius > math.Pow10(-c.places()-2) {
		return Verdict{}, false
	}
	if c.close(real(a.mid)-real(b.mid), real(a.mid)) {
		return correct(PathDecimal), true
	}
	return wrong(PathDecimal, "%s differs from %s at %d decimals", pred.show(), gold.show(), c.places()), true
}

// domains are values for variables of the kinds that problems have: parts of one, numbers above one, negative numbers, positive
// integers. They have no relations to each other.
var domains = [][]float64{
	{0.7310585786, 0.2817181715, 0.5671432904, 0.4142857143, 0.8660714286, 0.1353352832},
	{1.3247179572, 2.1937465012, 3.2918467350, 1.8392867552, 2.6854520011, 4.6692016091},
	{-0.6180371542, -1.7632228344, -2.5029078750, -0.2614972128, -3.3598856662, -1.2020569031},
	{3, 5, 2, 7, 4, 11},
}

// samples is how many points of a domain are tried.
const samples = 3

// differ reports whether two values certainly differ: at some point of every domain that has a point where both are defined.
// So x and the root of its square are not told apart, nor (-1)^n and cos(n pi).
func differ(gold, pred *node) bool {
	free := map[string]bool{}
	gold.symbols(free)
	pred.symbols(free)
	names := sortedNames(free)
	bases := gold.logarithms() == pred.logarithms()
	if len(names) == 0 {
		at := point{}
		if bases {
			at[openBase] = 10
		}
		known, different := differAt(gold, pred, at)
		return known && different
	}
	told := false
	for _, domain := range domains {
		known, different := false, false
		for k := 0; k < samples && !different; k++ {
			at := point{}
			for i, name := range names {
				at[name] = domain[(i+k*(1+i/len(domain)))%len(domain)] * float64(1+i/len(domain))
			}
			if bases {
				at[openBase] = 10
			}
			here, apart := differAt(gold, pred, at)
			known, different = known || here, different || here && apart
		}
		if known && !different {
			return false
		}
		told = told || different
	}
	return told
}

// logarithms reports whether a value has a logarithm without a base.
func (n *node) logarithms() bool {
	return !n.walk(func(m *node) bool { return m.kind != kFn || m.name != "log" })
}

func differAt(gold, pred *node, at point) (known, different bool) {
	a, err := gold.at(at)
	b, fail := pred.at(at)
	return err == nil && fail == nil, err == nil && fail == nil && a.differs(b)
}

func sortedNames(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
