package verify

import (
	"math/big"
	"slices"
	"strings"
)

var (
	minusOne = big.NewRat(-1, 1)
	half     = big.NewRat(1, 2)
)

var trigonometric = map[string]bool{"sin": true, "cos": true, "tan": true, "cot": true, "sec": true, "csc": true}

// greek are commands that name variables.
var greek = []string{"alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "iota", "kappa", "lambda",
	"mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "varphi", "chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma",
	"Phi", "Psi", "Omega", "ell", "hbar", "imath", "jmath", "aleph", "square", "Box"}

// decorations are commands that mark their argument and do not compute.
var decorations = []string{"overline", "vec", "hat", "bar", "tilde", "angle", "triangle", "widehat", "overrightarrow", "underline", "dot", "ddot",
	"measuredangle", "partial", "nabla"}

// commandValue reads a value that begins with a command.
func (p *parser) commandValue() (*node, error) {
	if p.takeString(`\{`) {
		return p.set()
	}
	if p.takeString(`\|`) {
		return p.enclosed("norm", func() bool { return p.takeString(`\|`) })
	}
	name := p.command()
	if slices.Contains(textCommands, name) {
		return p.textValue()
	}
	p.i += 1 + len(name)
	switch name {
	case "frac":
		return p.fraction()
	case "sqrt":
		return p.root()
	case "binom", "dbinom", "tbinom":
		return p.twoArguments("binom")
	case "boxed", "fbox", "mathbb", "mathcal", "mathfrak", "mathscr", "ensuremath", "underbrace", "mathop":
		return p.wrapped(name)
	case "pi":
		return sym("pi"), nil
	case "infty":
		return sym("oo"), nil
	case "emptyset", "varnothing":
		return &node{kind: kSet}, nil
	case "lvert", "lVert", "lfloor", "lceil":
		return p.enclosed(enclosures[name], func() bool { return p.take("r" + name[1:]) })
	case "langle":
		return p.angled()
	case "begin":
		return p.matrix()
	case "sum", "prod":
		return p.series(name)
	case "operatorname":
		return p.operator()
	}
	return p.namedCommand(name)
}

// enclosures are functions that are written around their argument.
var enclosures = map[string]string{"lvert": "abs", "lVert": "norm", "lfloor": "floor", "lceil": "ceil"}

// namedCommand reads a function, a variable or a mark behind its name.
func (p *parser) namedCommand(name string) (*node, error) {
	if f, ok := functionName(name); ok {
		return p.function(f)
	}
	if slices.Contains(greek, name) {
		return p.variable(name)
	}
	if slices.Contains(decorations, name) {
		inner, err := p.primary()
		if err != nil {
			return nil, err
		}
		return fn(name, inner), nil
	}
	return nil, p.errorf(`the command \%s is not known`, brief(name))
}

// textValue reads a text command that stands where a value is expected: a letter is a variable, a sum in a text is a sum.
func (p *parser) textValue() (*node, error) {
	words, ok := p.text()
	if !ok {
		return nil, p.errorf("a text command without its braces")
	}
	switch {
	case len(words) == 1 && letter(words[0]):
		return p.variable(words)
	case words != "" && strings.Trim(words, "0123456789.,-") == "":
		return p.inner(words)
	}
	if f, ok := functionName(words); ok {
		return p.function(f)
	}
	return nil, p.errorf("the words %q are not mathematics", brief(words))
}

// argument reads a group or a single sign, the way TeX does: one digit, one letter, one command.
func (p *parser) argument() (*node, error) {
	switch c := p.peek(); {
	case c == '{':
		return p.group()
	case digit(c):
		p.i++
		return num(new(big.Rat).SetInt64(int64(c - '0'))), nil
	case letter(c):
		p.i++
		return sym(string(c)), nil
	}
	return p.primary()
}

func (p *parser) fraction() (*node, error) {
	above, err := p.argument()
	if err != nil {
		return nil, err
	}
	below, err := p.argument()
	if err != nil {
		return nil, err
	}
	if !above.scalar() || !below.scalar() {
		return nil, p.errorf("a fraction of something that is not a number")
	}
	if above.kind == kNum && below.kind == kNum && below.rat.Sign() != 0 && !above.decimal && !below.decimal {
		q := num(new(big.Rat).Quo(above.rat, below.rat))
		q.reduced = q.rat.Denom().CmpAbs(below.rat.Num()) != 0 || below.rat.IsInt() && below.rat.Num().CmpAbs(big.NewInt(1)) == 0
		return q, nil
	}
	return quotient(above, below), nil
}

// root reads \sqrt[n]{x}.
func (p *parser) root() (*node, error) {
	degree := integer(2)
	if p.takeByte('[') {
		d, err := p.addition()
		if err != nil {
			return nil, err
		}
		if !p.takeByte(']') {
			return nil, p.errorf("no ] closes the degree of a root")
		}
		degree = d
	}
	var inner *node
	var err error
	if c := p.peek(); digit(c) {
		inner, err = p.number()
	} else {
		inner, err = p.argument()
	}
	if err != nil {
		return nil, err
	}
	if !inner.scalar() {
		return nil, p.errorf("a root of something that is not a number")
	}
	if degree.kind == kNum && degree.rat.Sign() != 0 {
		return rootOf(inner, degree.rat), nil
	}
	return power(inner, power(degree, integer(-1))), nil
}

// rootOf takes the real root where the degree is odd and the number negative.
func rootOf(inner *node, degree *big.Rat) *node {
	inverse := num(new(big.Rat).Inv(degree))
	if odd := degree.IsInt() && degree.Num().Bit(0) == 1; odd && inner.kind == kNum && inner.rat.Sign() < 0 {
		return negated(power(negated(inner), inverse))
	}
	return power(inner, inverse)
}

func (p *parser) twoArguments(name string) (*node, error) {
	a, err := p.argument()
	if err != nil {
		return nil, err
	}
	b, err := p.argument()
	if err != nil {
		return nil, err
	}
	return fn(name, a, b), nil
}

// wrapped reads the content of a command that frames it, or a letter in another script.
func (p *parser) wrapped(name string) (*node, error) {
	content, ok := p.raw()
	if !ok {
		return nil, p.errorf(`\%s without its braces`, name)
	}
	if name == "mathbb" && strings.TrimSpace(content) == "R" {
		return &node{kind: kTuple, open: '(', close: ')', args: []*node{negated(sym("oo")), sym("oo")}}, nil
	}
	if name[:4] == "math" && name != "mathop" && len(content) == 1 {
		return p.variable(name + " " + content)
	}
	return p.inner(content)
}

// inner reads a text of its own that stands inside the answer.
func (p *parser) inner(content string) (*node, error) {
	inner := &parser{s: content, depth: p.depth, nodes: p.nodes, brackets: p.brackets}
	n, err := inner.list()
	p.nodes = inner.nodes
	if err == nil && inner.peek() != 0 {
		err = p.errorf("%q is left over", brief(content[inner.i:]))
	}
	return n, err
}

// operator reads \operatorname{name}.
func (p *parser) operator() (*node, error) {
	p.takeByte('*')
	name, ok := p.raw()
	if !ok {
		return nil, p.errorf(`\operatorname without its braces`)
	}
	f, _ := functionName(strings.TrimSpace(name))
	return p.function(f)
}

// series reads a sum or a product with its bounds; it is not evaluated.
func (p *parser) series(name string) (*node, error) {
	if !p.takeByte('_') || p.peek() != '{' {
		return nil, p.errorf(`\%s without its bounds`, name)
	}
	lower, err := p.group()
	if err != nil {
		return nil, err
	}
	upper := sym("oo")
	if p.takeByte('^') {
		if upper, err = p.argument(); err != nil {
			return nil, err
		}
	}
	body, err := p.multiplication()
	if err != nil {
		return nil, err
	}
	return fn(name, lower, upper, body), nil
}
