package verify

import (
	"cmp"
	"slices"
	"strings"
)

// list reads values separated by commas, semicolons, "and" or "or". One value is itself.
func (p *parser) list() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	var items, groups []*node
	commas := false
	for {
		item, err := p.relation()
		if err != nil {
			return nil, err
		}
		for p.take("wedge", "land") { // both conditions at once
			other, err := p.relation()
			if err != nil {
				return nil, err
			}
			item = &node{kind: kUnion, name: "cap", args: []*node{item, other}}
		}
		items = append(items, item)
		switch p.separator() {
		case 0:
			return groupedValues(groups, items, commas), nil
		case ';':
			groups = append(groups, one(items))
			items = nil
		default:
			commas = true
		}
	}
}

// groupedValues joins the values of a list. Semicolons that separate lists with commas make each of those one value.
func groupedValues(groups, items []*node, commas bool) *node {
	switch {
	case len(groups) == 0:
		return one(items)
	case !commas:
		return listOf(append(groups, items...))
	}
	groups = append(groups, one(items))
	for i, g := range groups {
		if g.kind == kList {
			groups[i] = &node{kind: kTuple, open: '(', close: ')', args: g.args}
		}
	}
	return listOf(groups)
}

// one returns the only value of several, or all of them as a list.
func one(items []*node) *node {
	if len(items) == 1 {
		return items[0]
	}
	return listOf(items)
}

// listOf writes out double signs.
func listOf(items []*node) *node {
	var all []*node
	for _, item := range items {
		all = append(all, spread(item)...)
	}
	return &node{kind: kList, args: all}
}

// spread turns a value with a double sign into its two values.
func spread(n *node) []*node {
	if !n.walk(func(m *node) bool { return m.name != doubleSign }) {
		return []*node{chosen(n, 1), chosen(n, -1)}
	}
	return []*node{n}
}

const doubleSign = "±"

// chosen takes one sign of every double sign; \mp takes the other one.
func chosen(n *node, sign int64) *node {
	if n.kind == kFn && n.name == doubleSign {
		if n.ops[0] == "mp" {
			sign = -sign
		}
		return product(integer(sign), chosen(n.args[0], sign))
	}
	c := *n
	c.args = make([]*node, len(n.args))
	for i, a := range n.args {
		c.args[i] = chosen(a, sign)
	}
	return &c
}

// separator takes what stands between two values: signs, a word, or signs and a word. It returns the first sign, a comma for
// a word, and 0 where no other value follows.
func (p *parser) separator() byte {
	var found byte
	for {
		switch c := p.peek(); {
		case c == ',' || c == ';' || c == '&' && p.brackets == 0:
			p.i++
			found = cmp.Or(found, c)
			continue
		case p.conjunction():
			found = cmp.Or(found, ',')
			continue
		}
		if p.i == len(p.s) {
			return 0
		}
		return found
	}
}

var conjunctions = []string{"and", "or", "und", "et", "ou"}

// conjunction takes "and" or "or", in a text command or plain.
func (p *parser) conjunction() bool {
	start := p.i
	if words, ok := p.text(); ok {
		if slices.Contains(conjunctions, strings.Trim(strings.ToLower(words), " ,")) || words == "," {
			return true
		}
		p.i = start
		return false
	}
	if p.take("lor", "vee") {
		return true
	}
	for _, c := range conjunctions[:2] {
		rest, ok := strings.CutPrefix(p.s[p.i:], c)
		if ok && (rest == "" || !letter(rest[0]) || c == "or" && strings.Contains(rest, "=") && !strings.HasPrefix(rest, "=")) {
			p.i += len(c)
			return true
		}
	}
	p.i = start
	return false
}

// relationSigns maps spellings to the relation; longer ones first.
var relationSigns = []struct{ text, op string }{
	{"<=", "≤"}, {"=<", "≤"}, {">=", "≥"}, {"=>", "≥"}, {"!=", "≠"}, {"==", "="}, {"<", "<"}, {">", ">"}, {"=", "="},
}

var relationCommands = map[string]string{
	"le": "≤", "leq": "≤", "leqslant": "≤", "ge": "≥", "geq": "≥", "geqslant": "≥", "ne": "≠", "neq": "≠", "lt": "<", "gt": ">",
	"approx": "≈", "simeq": "≈", "in": "∈", "equiv": "=", "colon": "",
}

func (p *parser) relationOp() (string, bool) {
	if op := relationCommands[p.command()]; op != "" {
		p.i += 1 + len(p.command())
		return op, true
	}
	for _, r := range relationSigns {
		if p.takeString(r.text) {
			return r.op, true
		}
	}
	return "", false
}

// relation reads a chain of relations, or a single value.
func (p *parser) relation() (*node, error) {
	first, err := p.union()
	if err != nil {
		return nil, err
	}
	rel := &node{kind: kRel, args: []*node{first}}
	for {
		if p.brackets == 0 {
			p.takeByte('&') // alignment
		}
		op, ok := p.relationOp()
		if !ok {
			break
		}
		next, err := p.union()
		if err != nil {
			return nil, err
		}
		rel.ops = append(rel.ops, op)
		rel.args = append(rel.args, next)
	}
	if len(rel.ops) == 0 {
		return first, nil
	}
	return rel, nil
}

// union reads unions, intersections and differences of sets, from left to right.
func (p *parser) union() (*node, error) {
	left, err := p.ratio()
	if err != nil {
		return nil, err
	}
	for {
		name := p.setOp(left)
		if name == "" {
			return left, nil
		}
		right, err := p.ratio()
		if err != nil {
			return nil, err
		}
		left = &node{kind: kUnion, name: name, args: []*node{left, right}}
	}
}

func (p *parser) setOp(left *node) string {
	switch {
	case p.take("cup", "bigcup"):
		return "cup"
	case p.take("cap"):
		return "cap"
	case p.take("setminus", "backslash"):
		return "minus"
	}
	if w := p.word(); !left.scalar() && (w == "U" || w == "u") {
		p.i++
		return "cup"
	}
	return ""
}

// ratio reads a : b : c.
func (p *parser) ratio() (*node, error) {
	first, err := p.addition()
	if err != nil {
		return nil, err
	}
	parts := []*node{first}
	for first.scalar() && (p.peek() == ':' || p.command() == "colon") {
		if !p.take("colon") {
			p.i++
		}
		next, err := p.addition()
		if err != nil {
			return nil, err
		}
		parts = append(parts, next)
	}
	if len(parts) == 1 {
		return first, nil
	}
	return &node{kind: kRatio, args: parts}, nil
}
