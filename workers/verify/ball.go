package verify

import (
	"errors"
	"math"
	"math/cmplx"
)

// ball is a complex number and a bound on its error: the exact value lies within radius of mid. real says that the exact value
// is real, so that no side of a branch cut is chosen by rounding.
type ball struct {
	mid    complex128
	radius float64
	real   bool
}

var errNumeric = errors.New("no bound on the value")

// slack is the relative rounding of one operation, with room for the library's functions, which are good to a few units in the
// last place.
const slack = 16 * 0x1p-52

// rounded adds the rounding of the latest operation and refuses values without meaning.
func (b ball) rounded() (ball, error) {
	b.radius += slack * cmplx.Abs(b.mid)
	if b.real {
		b.mid = complex(real(b.mid), 0)
	}
	if cmplx.IsNaN(b.mid) || cmplx.IsInf(b.mid) || math.IsNaN(b.radius) || math.IsInf(b.radius, 0) || b.radius > 1+cmplx.Abs(b.mid) {
		return b, errNumeric
	}
	return b, nil
}

// differs reports whether two balls have no value in common.
func (b ball) differs(c ball) bool {
	return cmplx.Abs(b.mid-c.mid) > b.radius+c.radius+slack*(cmplx.Abs(b.mid)+cmplx.Abs(c.mid))
}

// point gives every variable a value, and the base of logarithms without one.
type point map[string]float64

// at evaluates a scalar at a point, with principal branches.
func (n *node) at(p point) (ball, error) {
	switch n.kind {
	case kNum:
		f, exact := n.rat.Float64()
		b := ball{mid: complex(f, 0), real: true}
		if !exact {
			return b.rounded()
		}
		return b, nil
	case kSym:
		return symbolAt(n.name, p)
	case kAdd, kMul:
		return n.foldAt(p)
	case kPow:
		return n.powerAt(p)
	case kFn:
		return n.functionAt(p)
	case kRatio:
		if len(n.args) == 2 {
			return quotient(n.args[0], n.args[1]).at(p)
		}
	}
	return ball{}, errNumeric
}

func symbolAt(name string, p point) (ball, error) {
	switch name {
	case "pi":
		return ball{mid: math.Pi, radius: 2e-16, real: true}, nil
	case "e":
		return ball{mid: math.E, radius: 2e-16, real: true}, nil
	case "i":
		return ball{mid: 1i}, nil
	}
	v, ok := p[name]
	if !ok {
		return ball{}, errNumeric
	}
	return ball{mid: complex(v, 0), real: true}, nil
}

func (n *node) foldAt(p point) (ball, error) {
	out, err := n.args[0].at(p)
	if err != nil {
		return out, err
	}
	for _, a := range n.args[1:] {
		b, err := a.at(p)
		if err != nil {
			return b, err
		}
		if n.kind == kAdd {
			out = ball{out.mid + b.mid, out.radius + b.radius, out.real && b.real}
		} else {
			out = timesBall(out, b)
		}
		if out, err = out.rounded(); err != nil {
			return out, err
		}
	}
	return out, nil
}

func timesBall(a, b ball) ball {
	return ball{a.mid * b.mid, cmplx.Abs(a.mid)*b.radius + cmplx.Abs(b.mid)*a.radius + a.radius*b.radius, a.real && b.real}
}

// powerAt handles integer exponents by products and the others by exp(e log b).
func (n *node) powerAt(p point) (ball, error) {
	base, err := n.args[0].at(p)
	if err != nil {
		return base, err
	}
	if e := n.args[1]; e.kind == kNum && e.rat.IsInt() && e.rat.Num().BitLen() < 10 {
		return integerPowerAt(base, e.rat.Num().Int64())
	}
	exponent, err := n.args[1].at(p)
	if err != nil {
		return exponent, err
	}
	if base.mid == 0 && base.radius == 0 && real(exponent.mid) > exponent.radius {
		return ball{real: true}, nil
	}
	l, err := logBall(base)
	if err != nil {
		return l, err
	}
	out, err := timesBall(exponent, l).rounded()
	if err != nil {
		return out, err
	}
	return expBall(out)
}

func integerPowerAt(base ball, k int64) (ball, error) {
	out := ball{mid: 1, real: true}
	var err error
	for range max(k, -k) {
		if out, err = timesBall(out, base).rounded(); err != nil {
			return out, err
		}
	}
	if k < 0 {
		return inverseBall(out)
	}
	return out, nil
}

func inverseBall(b ball) (ball, error) {
	size := cmplx.Abs(b.mid)
	if size <= 2*b.radius {
		return b, errNumeric
	}
	return ball{1 / b.mid, b.radius / (size * (size - b.radius)), b.real}.rounded()
}

func expBall(b ball) (ball, error) {
	v := cmplx.Exp(b.mid)
	return ball{v, cmplx.Abs(v) * math.Expm1(b.radius), b.real}.rounded()
}

// logBall refuses balls that meet the branch cut or the origin, unless the value is a negative real number.
func logBall(b ball) (ball, error) {
	size := cmplx.Abs(b.mid)
	onCut := real(b.mid) < b.radius && math.Abs(imag(b.mid)) <= b.radius && !b.real
	if size <= 2*b.radius || onCut {
		return b, errNumeric
	}
	return ball{cmplx.Log(b.mid), b.radius / (size - b.radius), b.real && real(b.mid) > 0}.rounded()
}
