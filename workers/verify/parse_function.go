package verify

import (
	"slices"
)

// functionNames are read as functions in plain letters and as commands.
var functionNames = []string{"sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "ln", "log", "exp",
	"gcd", "lcm", "max", "min", "det", "sqrt", "abs", "floor", "ceil", "lg"}

var functionSpelling = map[string]string{"asin": "arcsin", "acos": "arccos", "atan": "arctan", "cosec": "csc", "arcsec": "arcsec", "arccot": "arccot",
	"arccsc": "arccsc", "tg": "tan", "ctg": "cot", "Abs": "abs",
	"Max": "max", "Min": "min", "factorial": "factorial"}

func functionName(w string) (string, bool) {
	if f, ok := functionSpelling[w]; ok {
		return f, true
	}
	return w, slices.Contains(functionNames, w)
}

// function reads a power, an index and an argument behind a function's name: \sin^2 x, \log_2 8, \sin 2x.
func (p *parser) function(name string) (*node, error) {
	var exponent, base *node
	var err error
	for exponent == nil || base == nil {
		if exponent == nil && p.peek() == '^' {
			p.i++
			exponent, err = p.exponent()
		} else if base == nil && name == "log" && p.peek() == '_' {
			p.i++
			base, err = p.primary()
		} else {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	args, err := p.arguments()
	if err != nil {
		return nil, err
	}
	if exponent != nil && exponent.kind == kNum && exponent.rat.Cmp(minusOne) == 0 && trigonometric[name] {
		return fn("arc"+name, args...), nil
	}
	out := fn(name, args...)
	if base != nil && len(args) == 1 {
		out = quotient(fn("ln", args[0]), fn("ln", base))
	}
	if exponent != nil {
		out = power(out, exponent)
	}
	return out, nil
}

// arguments reads a bracket, a group, or the factors up to the next function, sign or bracket.
func (p *parser) arguments() ([]*node, error) {
	if c := p.peek(); c == '(' || c == '{' || c == '[' {
		inner, err := p.primary()
		if err != nil {
			return nil, err
		}
		if collection(inner) {
			return inner.args, nil
		}
		for p.peek() == '^' || p.peek() == '!' { // \sin(x)^2 is the sine's power for some and the argument's for others
			return nil, p.errorf("a power behind a function's argument can be read in two ways")
		}
		return []*node{inner}, nil
	}
	sign, signed := p.sign()
	arg, err := p.factor()
	if err != nil {
		return nil, err
	}
	for p.juxtaposed(arg) && p.peek() != '(' {
		if _, isFunction := functionName(p.command() + p.word()); isFunction {
			break
		}
		f, err := p.factor()
		if err != nil {
			return nil, err
		}
		arg = product(arg, f)
	}
	if p.peek() == '/' && digit(next(p.s, p.i+1)) && arg.kind != kNum { // \sin \pi/4
		p.i++
		below, err := p.factor()
		if err != nil {
			return nil, err
		}
		arg = quotient(arg, below)
	}
	if signed && sign == "-" {
		arg = negated(arg)
	}
	return []*node{arg}, nil
}
