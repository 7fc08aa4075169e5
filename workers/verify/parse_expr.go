package verify

import (
	"strings"
)

// addition reads a sum.
func (p *parser) addition() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var terms []*node
	for first := true; ; first = false {
		sign, ok := p.sign()
		if !ok && !first {
			break
		}
		term, err := p.multiplication()
		if err != nil {
			return nil, err
		}
		switch sign {
		case "-":
			if !term.scalar() && term.kind != kMatrix {
				return nil, p.errorf("a sign before something that is not a number")
			}
			term = p.minus(term)
		case "pm", "mp":
			term = &node{kind: kFn, name: doubleSign, ops: []string{sign}, args: []*node{term}}
		}
		terms = append(terms, term)
	}
	if len(terms) == 1 {
		return terms[0], nil
	}
	for i := 1; i < len(terms); i++ {
		if terms[0].kind == kMatrix && terms[i].kind == kMatrix {
			return matrixSum(terms)
		}
	}
	s := sum(terms...)
	s.unit, s.percent = terms[len(terms)-1].unit, terms[len(terms)-1].percent
	if s.percent {
		return nil, p.errorf("a percent sign in a sum")
	}
	return s, nil
}

// minus keeps what stands behind a value.
func (p *parser) minus(n *node) *node {
	m := negated(n)
	c := *m
	c.unit, c.percent, c.degree, c.decimal = n.unit, n.percent, n.degree, n.decimal
	if n.kind == kMatrix {
		c = *n
		c.args = make([]*node, len(n.args))
		for i, a := range n.args {
			c.args[i] = negated(a)
		}
	}
	return &c
}

// sign takes a sign; several signs in a row are not an answer's spelling, except a plus before a minus.
func (p *parser) sign() (string, bool) {
	switch c := p.peek(); {
	case c == '+' && strings.HasPrefix(p.s[p.i:], "+-"), c == '+' && strings.HasPrefix(p.s[p.i:], "+/-"):
		if strings.HasPrefix(p.s[p.i:], "+/-") {
			p.i += 3
			return "pm", true
		}
		p.i += 2
		return "-", true
	case c == '+' || c == '-':
		p.i++
		return string(c), true
	case p.take("pm"):
		return "pm", true
	case p.take("mp"):
		return "mp", true
	}
	return "", false
}

// multiplication reads factors with or without signs between them, then units.
func (p *parser) multiplication() (*node, error) {
	left, err := p.factor()
	if err != nil {
		return nil, err
	}
	for {
		if left.scalar() && p.units(&left) {
			continue
		}
		switch {
		case p.peek() == '*' && !strings.HasPrefix(p.s[p.i:], "**"), p.command() == "cdot", p.command() == "times", p.command() == "ast":
			if !p.take("cdot", "times", "ast") {
				p.i++
			}
			left, err = p.times(left, false)
		case p.peek() == '/' || p.command() == "div":
			if !p.take("div") {
				p.i++
			}
			left, err = p.times(left, true)
		case p.juxtaposed(left):
			left, err = p.times(left, false)
		default:
			return left, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (p *parser) times(left *node, divide bool) (*node, error) {
	var negative bool
	if s, ok := p.sign(); ok {
		if s != "-" && s != "+" {
			return nil, p.errorf("a double sign inside a product")
		}
		negative = s == "-"
	}
	right, err := p.factor()
	if err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil { // a product grows to the left
		return nil, err
	}
	p.depth--
	if negative {
		right = negated(right)
	}
	switch {
	case divide && left.scalar() && right.scalar():
		return quotient(left, right), nil
	case left.kind == kMatrix || right.kind == kMatrix:
		return matrixProduct(left, right)
	case !left.scalar() || !right.scalar():
		return nil, p.errorf("a product of something that is not a number")
	case left.kind == kMul && !left.percent && left.unit == "":
		return product(append(append([]*node(nil), left.args...), right)...), nil
	}
	return product(left, right), nil
}

// juxtaposed reports whether another factor follows without a sign.
func (p *parser) juxtaposed(left *node) bool {
	c := p.peek()
	switch {
	case letter(c):
		return !p.stopWord() && left.scalar()
	case c == '|':
		return p.bars == 0 && p.brackets == 0 && left.scalar()
	case c == '(' || c == '[':
		return left.scalar() && (c == '(' || left.kind != kNum) || left.kind == kMatrix
	case digit(c) && p.i > 0 && strings.HasSuffix(strings.TrimRight(p.s[:p.i], " "), ")"):
		return left.scalar() // (-1) 2
	case c == '{' || digit(c) || c == '.' && p.i+1 < len(p.s) && digit(p.s[p.i+1]):
		return left.scalar() && left.kind != kNum && (left.kind != kMul || left.args[len(left.args)-1].kind != kNum)
	case c == '\\':
		name := p.command()
		_, relation := relationCommands[name]
		return name != "" && !relation && !stopCommands[name]
	}
	return false
}

// stopCommands end a product.
var stopCommands = map[string]bool{"cup": true, "cap": true, "bigcup": true, "setminus": true, "backslash": true, "pm": true, "mp": true, "cdot": true,
	"times": true, "div": true, "end": true, "rvert": true, "rfloor": true, "rceil": true, "mid": true, "rangle": true, "vee": true, "wedge": true,
	"lor": true, "land": true, "colon": true, "ast": true, "cr": true, "pmod": true, "bmod": true, "mod": true, "rVert": true, "to": true, "rightarrow": true,
	"text": true, "textbf": true, "mbox": true, "textnormal": true, "textrm": true, "textit": true, "hbox": true}

// stopWord reports whether the word at the place joins values.
func (p *parser) stopWord() bool {
	w := p.word()
	return w == "and" || w == "or" || w == "U" && strings.IndexByte("([{\\ ", next(p.s, p.i+1)) >= 0 ||
		strings.HasPrefix(w, "or") && strings.Contains(p.s[p.i:], "=")
}

func next(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}
