package verify

import (
	"hash/fnv"
	"math"
	"math/cmplx"
	"strings"
)

// functionAt evaluates the functions that have a bound; the others have none.
func (n *node) functionAt(p point) (ball, error) {
	if n.opaque() {
		return n.opaqueAt(p)
	}
	if len(n.args) != 1 {
		return n.severalAt(p)
	}
	arg := n.args[0]
	if trigonometric[n.name] {
		arg = radians(arg)
	}
	b, err := arg.at(p)
	if err != nil {
		return b, err
	}
	switch n.name {
	case "sin", "cos":
		return sineBall(n.name, b)
	case "tan", "cot", "sec", "csc":
		return trigonometricBall(n.name, b)
	case "exp":
		return expBall(b)
	case "ln":
		return logBall(b)
	case "sqrt":
		return power(n.args[0], num(half)).at(p)
	case "log", "lg":
		return logarithmAt(b, n.name, p)
	case "abs":
		return ball{complex(cmplx.Abs(b.mid), 0), b.radius, true}.rounded()
	case "factorial":
		return factorialBall(b)
	case "floor", "ceil":
		return stepBall(n.name, b)
	}
	return realFunction(n.name, b)
}

// logarithmAt divides by the logarithm of the base; log without a base takes the one that the point gives.
func logarithmAt(b ball, name string, p point) (ball, error) {
	base := 10.0
	if name == "log" {
		var ok bool
		if base, ok = p[openBase]; !ok {
			return b, errNumeric
		}
	}
	l, err := logBall(b)
	if err != nil {
		return l, err
	}
	return timesBall(l, ball{mid: complex(1/math.Log(base), 0), radius: 1e-15, real: true}).rounded()
}

// openBase is the base of log, which is 10 for some and e for others.
const openBase = "the base of log"

func sineBall(name string, b ball) (ball, error) {
	v := cmplx.Sin(b.mid)
	if name == "cos" {
		v = cmplx.Cos(b.mid)
	}
	// |sin'| <= cosh of the imaginary part, and the argument's own rounding grows with its size
	reach := math.Cosh(math.Abs(imag(b.mid)) + b.radius)
	return ball{v, reach * (b.radius + slack*cmplx.Abs(b.mid)), b.real}.rounded()
}

func trigonometricBall(name string, b ball) (ball, error) {
	s, err := sineBall("sin", b)
	if err != nil {
		return s, err
	}
	c, err := sineBall("cos", b)
	if err != nil {
		return c, err
	}
	below, above := c, s
	switch name {
	case "cot":
		below, above = s, c
	case "sec":
		above = ball{mid: 1, real: true}
	case "csc":
		below, above = s, ball{mid: 1, real: true}
	}
	inverse, err := inverseBall(below)
	if err != nil {
		return inverse, err
	}
	return timesBall(above, inverse).rounded()
}

// opaque reports whether a function is any function: f(x), an indexed name.
func (n *node) opaque() bool {
	return strings.HasPrefix(n.name, "of ") || strings.HasPrefix(n.name, "index ")
}

// opaqueAt gives a function that may be any one a value that depends on its name and arguments. The arguments have to be
// polynomials: their normal form is the same exactly for the same polynomial.
func (n *node) opaqueAt(p point) (ball, error) {
	h := fnv.New64a()
	h.Write([]byte(n.name))
	for _, a := range n.args {
		if !a.scalar() {
			return ball{}, errNumeric
		}
		f, err := normalise(a)
		if err != nil || !polynomial(f) {
			return ball{}, errNumeric
		}
		h.Write([]byte(f.String()))
	}
	values := domains[h.Sum64()%2]
	return ball{mid: complex(values[h.Sum64()/2%uint64(len(values))]+float64(h.Sum64()>>40)/(1<<24), 0), real: true}, nil
}

// gammaBall extends the factorial to the numbers between the integers.
func gammaBall(b ball) (ball, error) {
	k := real(b.mid)
	if !b.real || b.radius > 1e-13 || k < 0 || k > 20 {
		return b, errNumeric
	}
	v := math.Gamma(k + 1)
	return ball{complex(v, 0), v * 1e-11, true}.rounded() // the digamma function is below 4 up to 20
}

func factorialBall(b ball) (ball, error) {
	k := real(b.mid)
	if b.real && k != math.Trunc(k) {
		return gammaBall(b)
	}
	if !b.real || b.radius != 0 || k != math.Trunc(k) || k < 0 || k > 100 {
		return b, errNumeric
	}
	out := ball{mid: 1, real: true}
	var err error
	for i := 2.0; i <= k; i++ {
		if out, err = timesBall(out, ball{mid: complex(i, 0), real: true}).rounded(); err != nil {
			return out, err
		}
	}
	return out, nil
}

// stepBall rounds to an integer where the whole ball rounds to the same one.
func stepBall(name string, b ball) (ball, error) {
	step := math.Floor
	if name == "ceil" {
		step = math.Ceil
	}
	v := step(real(b.mid))
	if !b.real || step(real(b.mid)-b.radius) != v || step(real(b.mid)+b.radius) != v {
		return b, errNumeric
	}
	return ball{mid: complex(v, 0), real: true}, nil
}

// realFunctions hold a function and a bound on its slope around x.
var realFunctions = map[string]struct{ value, slope func(x float64) float64 }{
	"arctan": {math.Atan, func(float64) float64 { return 1 }},
	"arcsin": {math.Asin, func(x float64) float64 { return 1 / math.Sqrt(1-x*x) }},
	"arccos": {math.Acos, func(x float64) float64 { return 1 / math.Sqrt(1-x*x) }},
	"sinh":   {math.Sinh, math.Cosh},
	"cosh":   {math.Cosh, math.Cosh},
	"tanh":   {math.Tanh, func(float64) float64 { return 1 }},
}

func realFunction(name string, b ball) (ball, error) {
	f, ok := realFunctions[name]
	if !ok || !b.real {
		return b, errNumeric
	}
	x := real(b.mid)
	far := math.Abs(x) + 2*b.radius // the slope grows away from zero
	slope := f.slope(far)
	return ball{complex(f.value(x), 0), 2 * slope * b.radius, true}.rounded()
}

// severalAt evaluates functions of several arguments.
func (n *node) severalAt(p point) (ball, error) {
	if f, err := normalise(n); err == nil {
		if v, ok := f.value(); ok {
			return num(v).at(p)
		}
	}
	if n.name != "max" && n.name != "min" || len(n.args) == 0 {
		return ball{}, errNumeric
	}
	best, err := n.args[0].at(p)
	for _, a := range n.args[1:] {
		if err != nil {
			return best, err
		}
		var b ball
		if b, err = a.at(p); err != nil || !b.real || !best.real || !b.differs(best) {
			return b, errNumeric
		}
		if (real(b.mid) > real(best.mid)) == (n.name == "max") {
			best = b
		}
	}
	return best, err
}
