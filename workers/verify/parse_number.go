package verify

import (
	"math/big"
	"strings"
)

// maxDigits bounds a number's digits; Integer reads longer ones.
const maxDigits = 1024

// number reads digits with thousands marks, a decimal part, repeating decimals, scientific notation, a base, or a mixed number.
func (p *parser) number() (*node, error) {
	start := p.i
	whole, grouped := p.digits()
	if grouped && next(p.s, p.i) == ',' && digit(next(p.s, p.i+1)) { // not groups: 1,234,5
		p.i = start
		whole = p.run()
	}
	n := &node{kind: kNum}
	fraction := ""
	if next(p.s, p.i) == '.' && (digit(next(p.s, p.i+1)) || whole != "") && next(p.s, p.i+1) != '.' {
		p.i++
		fraction = p.run()
		if fraction != "" {
			n.decimal = true
		}
	}
	if len(whole)+len(fraction) > maxDigits {
		return nil, errBounds
	}
	n.rat, _ = new(big.Rat).SetString(pad(whole) + "." + pad(fraction))
	if n.rat == nil {
		return nil, p.errorf("a number without digits")
	}
	if err := p.repeating(n, len(fraction)); err != nil {
		return nil, err
	}
	if err := p.scientific(n); err != nil {
		return nil, err
	}
	n.decimal = n.decimal && !n.rat.IsInt()
	switch {
	case n.rat.IsInt() && p.i < len(p.s) && p.s[p.i] == '_':
		return p.base(n, whole)
	case n.rat.IsInt() && fraction == "":
		return p.mixed(n), nil
	}
	return n, nil
}

func pad(digits string) string {
	if digits == "" {
		return "0"
	}
	return digits
}

// run takes a run of digits.
func (p *parser) run() string {
	start := p.i
	for p.i < len(p.s) && digit(p.s[p.i]) {
		p.i++
	}
	return p.s[start:p.i]
}

// digits takes a run of digits with thousands marks: {,} anywhere, a comma or a space outside brackets.
func (p *parser) digits() (all string, grouped bool) {
	all = p.run()
	for len(all) > 0 && (grouped || len(all) <= 3) {
		mark := p.thousandsMark()
		if mark == 0 || !grouped && all[0] == '0' {
			break
		}
		p.i += mark
		all += p.run()
		grouped = true
	}
	return all, grouped
}

// thousandsMark returns the length of the mark before a group of exactly three digits, 0 if there is none.
func (p *parser) thousandsMark() int {
	for _, mark := range []string{"{,}", ",", " "} {
		rest, ok := strings.CutPrefix(p.s[p.i:], mark)
		if !ok || len(rest) < 3 || !digit(rest[0]) || !digit(rest[1]) || !digit(rest[2]) || digit(next(rest, 3)) {
			continue
		}
		if mark == "," && p.brackets > 0 || mark == " " && next(rest, 3) == '/' {
			continue
		}
		return len(mark)
	}
	return 0
}

// repeating takes an overlined period behind a decimal part of n digits.
func (p *parser) repeating(n *node, places int) error {
	start := p.i
	if !n.decimal && next(p.s, p.i-1) != '.' || !p.take("overline", "bar", "dot") {
		return nil
	}
	period, ok := p.raw()
	if !ok || period == "" || len(period) > 64 || strings.Trim(period, "0123456789") != "" {
		p.i = start
		return p.errorf("a period that is not digits")
	}
	value, _ := new(big.Int).SetString(period, 10)
	nines := new(big.Int).Sub(pow10(len(period)), big.NewInt(1))
	part := new(big.Rat).SetFrac(value, nines.Mul(nines, pow10(places)))
	n.rat.Add(n.rat, part)
	n.decimal = false
	return nil
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// maxScale bounds the exponent of scientific notation.
const maxScale = 400

// scientific takes e+12 or E-3 behind digits.
func (p *parser) scientific(n *node) error {
	if c := next(p.s, p.i); c != 'e' && c != 'E' {
		return nil
	}
	j := p.i + 1
	if c := next(p.s, j); c == '+' || c == '-' {
		j++
	}
	end := j
	for digit(next(p.s, end)) {
		end++
	}
	if end == j || letter(next(p.s, end)) {
		return nil
	}
	exponent, ok := new(big.Int).SetString(strings.TrimPrefix(p.s[p.i+1:end], "+"), 10)
	if !ok || !exponent.IsInt64() || exponent.Int64() > maxScale || exponent.Int64() < -maxScale {
		return errBounds
	}
	p.i = end
	scale := new(big.Rat).SetInt(pow10(int(max(exponent.Int64(), -exponent.Int64()))))
	if exponent.Sign() < 0 {
		scale.Inv(scale)
	}
	n.rat.Mul(n.rat, scale)
	return nil
}

// base takes an index behind an integer: digits in that base.
func (p *parser) base(n *node, digits string) (*node, error) {
	p.i++
	base := p.argumentText()
	if words, ok := strings.CutPrefix(base, `\text`); ok {
		base = strings.Trim(words, "{} ")
	}
	r, ok := new(big.Rat).SetString(base)
	if !ok || !r.IsInt() {
		return nil, p.errorf("a base that is not an integer")
	}
	return &node{kind: kBase, name: strings.TrimLeft(digits, "0"), rat: r}, nil
}

// argumentText takes a group in braces or one sign, as text.
func (p *parser) argumentText() string {
	if content, ok := p.raw(); ok {
		return strings.TrimSpace(content)
	}
	if p.peek() == 0 {
		return ""
	}
	if d := p.run(); d != "" {
		return d
	}
	p.i++
	return p.s[p.i-1 : p.i]
}

// mixed takes a proper fraction of integers behind an integer: 3\frac{1}{2} or 3 1/2.
func (p *parser) mixed(n *node) *node {
	start := p.i
	if f, ok := p.properFraction(); ok {
		n.rat = new(big.Rat).Add(n.rat, f)
		return n
	}
	p.i = start
	return n
}

func (p *parser) properFraction() (*big.Rat, bool) {
	spaced := p.i < len(p.s) && p.s[p.i] == ' '
	var above, below string
	if p.take("frac") {
		above, below = p.fractionPart(), p.fractionPart()
	} else {
		if !spaced {
			return nil, false
		}
		p.space()
		above = p.run()
		if above == "" || !p.takeByte('/') {
			return nil, false
		}
		p.space()
		below = p.run()
	}
	a, ok := new(big.Int).SetString(above, 10)
	b, fine := new(big.Int).SetString(below, 10)
	if !ok || !fine || a.Sign() <= 0 || a.Cmp(b) >= 0 || len(above)+len(below) > 32 {
		return nil, false
	}
	return new(big.Rat).SetFrac(a, b), true
}

// fractionPart takes an argument of \frac as text: a group or one digit.
func (p *parser) fractionPart() string {
	if content, ok := p.raw(); ok {
		return strings.TrimSpace(content)
	}
	if p.peek() == 0 {
		return ""
	}
	p.i++
	return p.s[p.i-1 : p.i]
}
