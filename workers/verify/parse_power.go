package verify

import (
	"strings"
)

// factor reads a power with what stands behind it.
func (p *parser) factor() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	base, err := p.primary()
	if err != nil {
		return nil, err
	}
	for {
		switch c := p.peek(); {
		case c == '^' || strings.HasPrefix(p.s[p.i:], "**"):
			if c == '*' {
				p.i++
			}
			p.i++
			exponent, err := p.exponent()
			if err != nil {
				return nil, err
			}
			if !base.scalar() {
				return nil, p.errorf("a power of something that is not a number")
			}
			base = power(base, exponent)
		case c == '!' && next(p.s, p.i+1) != '=':
			p.i++
			base = fn("factorial", base)
		case strings.HasPrefix(p.s[p.i:], "°"):
			p.i += len("°")
			if c := p.word(); c == "C" || c == "F" {
				p.i++
			}
			c := *base
			c.degree = true
			base = &c
		case p.percentSign():
			c := *base
			c.percent = true
			return &c, nil
		default:
			return base, nil
		}
	}
}

// percentSign takes a percent sign or its word.
func (p *parser) percentSign() bool {
	if p.takeString(`\%`) || p.takeByte('%') {
		return true
	}
	start := p.i
	words, ok := p.text()
	if !ok {
		words = p.word()
	}
	switch strings.ToLower(strings.TrimSpace(words)) {
	case "percent", "pct", "percentage", `\%`, "%":
		if !ok {
			p.i += len(words)
		}
		return true
	}
	p.i = start
	return false
}

// exponent reads what follows ^.
func (p *parser) exponent() (*node, error) {
	if s, ok := p.sign(); ok {
		if s != "-" && s != "+" {
			return nil, p.errorf("a double sign in an exponent")
		}
		e, err := p.exponent()
		if err == nil && s == "-" {
			e = negated(e)
		}
		return e, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	base, err := p.primary()
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(p.s[p.i:], "**") || p.peek() == '^' { // powers associate to the right
		p.i++
		p.takeByte('*')
		e, err := p.exponent()
		if err != nil {
			return nil, err
		}
		return power(base, e), nil
	}
	return base, nil
}
