package verify

import (
	"slices"
	"strings"
)

// primary reads what has no operator of its own: a number, a name, a bracket, a command.
func (p *parser) primary() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	switch c := p.peek(); {
	case digit(c) || c == '.' && digit(next(p.s, p.i+1)):
		return p.number()
	case c == '(' || c == '[' || c == ']':
		return p.bracket()
	case c == '{':
		return p.group()
	case c == '|':
		p.i++
		p.bars++
		defer func() { p.bars-- }()
		return p.enclosed("abs", func() bool { return p.takeByte('|') })
	case letter(c):
		return p.name()
	case c == '\\':
		return p.commandValue()
	case c == 0:
		return nil, p.errorf("the answer ends where a value was expected")
	}
	return nil, p.errorf("%q where a value was expected", brief(p.s[p.i:]))
}

// group reads braces: they only hold together.
func (p *parser) group() (*node, error) {
	p.i++
	inner, err := p.list()
	if err != nil {
		return nil, err
	}
	if !p.takeByte('}') {
		return nil, p.errorf("no } closes the group")
	}
	return inner, nil
}

// enclosed reads a sum up to its closing sign.
func (p *parser) enclosed(name string, closed func() bool) (*node, error) {
	inner, err := p.addition()
	if err != nil {
		return nil, err
	}
	if !closed() {
		return nil, p.errorf("%s is not closed", name)
	}
	return fn(name, inner), nil
}

// bracket reads a value in brackets, a tuple, or an interval: (a,b], [a,b), ]a,b[ too.
func (p *parser) bracket() (*node, error) {
	open := p.s[p.i]
	p.i++
	p.brackets++
	defer func() { p.brackets-- }()
	if open == '(' && p.takeByte(')') || open == '[' && p.takeByte(']') {
		return &node{kind: kTuple, open: open, close: open}, nil
	}
	inner, err := p.list()
	if err != nil {
		return nil, err
	}
	end := p.peek()
	if end != ')' && end != ']' && (open != ']' || end != '[') {
		return nil, p.errorf("no bracket closes the %c", open)
	}
	p.i++
	if open == ']' {
		open = '('
	}
	if end == '[' {
		end = ')'
	}
	if inner.kind == kList {
		return &node{kind: kTuple, open: open, close: end, args: inner.args}, nil
	}
	return inner, nil
}

// name reads a word of plain letters: a function, a constant, a variable, or a product of variables.
func (p *parser) name() (*node, error) {
	w := p.word()
	if f, ok := functionName(w); ok {
		p.i += len(w)
		return p.function(f)
	}
	switch strings.ToLower(w) {
	case "pi":
		p.i += len(w)
		return sym("pi"), nil
	case "inf", "infinity", "infty", "oo":
		p.i += len(w)
		return sym("oo"), nil
	}
	if slices.Contains(greek, w) && len(w) > 2 {
		p.i += len(w)
		return p.variable(w)
	}
	if !variables(w) {
		return nil, p.errorf("the word %q is not mathematics", brief(w))
	}
	p.i++
	return p.variable(w[:1])
}

// variables reports whether a run of letters may be a product of variables: a few letters, or the corners of a figure.
func variables(w string) bool {
	const most, corners = 4, 8
	return len(w) <= most || len(w) <= corners && strings.ToUpper(w) == w
}

// applied names are functions wherever a bracket follows.
const applied = "fghFGH"

// variable reads what belongs to a variable: indices, primes, arguments.
func (p *parser) variable(name string) (*node, error) {
	index, err := p.index(&name)
	if err != nil {
		return nil, err
	}
	for next(p.s, p.i) == '\'' {
		p.i++
		name += "'"
	}
	out := sym(name)
	if index != nil {
		out = fn("index "+name, index)
	}
	if p.peek() == '(' && index == nil && (strings.Contains(applied, name) || name == "Gamma" || p.definition()) {
		p.i++
		p.brackets++
		args, err := p.list()
		p.brackets--
		if err != nil {
			return nil, err
		}
		if !p.takeByte(')') {
			return nil, p.errorf("no bracket closes the arguments of %s", name)
		}
		if args.kind == kList {
			return fn("of "+name, args.args...), nil
		}
		if name == "Gamma" && args.scalar() {
			return fn("factorial", sum(args, integer(-1))), nil
		}
		return fn("of "+name, args), nil
	}
	return out, nil
}

// definition reports whether the bracket at the place is closed right before an equals sign, as in W(x) = 1.
func (p *parser) definition() bool {
	end := strings.IndexByte(p.s[p.i:], ')')
	return end > 0 && !strings.ContainsAny(p.s[p.i+1:p.i+end], "()+-*/^") && strings.HasPrefix(strings.TrimLeft(p.s[p.i+end+1:], " "), "=")
}

// index reads an index. A plain one becomes part of the name, so that x_1 and x_{1} are one variable.
func (p *parser) index(name *string) (*node, error) {
	if p.peek() != '_' {
		return nil, nil
	}
	p.i++
	start := p.i
	text := p.argumentText()
	if words, ok := strings.CutPrefix(text, `\text`); ok {
		text = strings.Trim(words, "{} ")
	}
	if text != "" && strings.Trim(text, "0123456789") == "" || len(text) > 1 && allLetters(text) {
		*name += "_" + text
		return nil, nil
	}
	p.i = start
	if p.peek() == '{' {
		return p.group()
	}
	return p.primary()
}

func allLetters(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 127 || !letter(byte(r)) }) < 0
}
