package verify

import "strings"

// set reads a set behind its opening brace: its members, or a condition on them.
func (p *parser) set() (*node, error) {
	p.brackets++
	defer func() { p.brackets-- }()
	if p.takeString(`\}`) {
		return &node{kind: kSet}, nil
	}
	inner, err := p.list()
	if err != nil {
		return nil, err
	}
	if p.take("mid", "vert") || p.takeByte('|') || p.takeByte(':') {
		if inner, err = p.list(); err != nil { // the members are what satisfies the condition
			return nil, err
		}
	} else if inner.kind == kList {
		inner = &node{kind: kSet, args: inner.args}
	} else {
		inner = &node{kind: kSet, args: spread(inner)}
	}
	if !p.takeString(`\}`) {
		return nil, p.errorf(`no \} closes the set`)
	}
	return inner, nil
}

// angled reads a vector in angle brackets.
func (p *parser) angled() (*node, error) {
	p.brackets++
	defer func() { p.brackets-- }()
	inner, err := p.list()
	if err != nil {
		return nil, err
	}
	if !p.take("rangle") {
		return nil, p.errorf(`no \rangle closes the vector`)
	}
	if inner.kind != kList {
		return inner, nil
	}
	return &node{kind: kTuple, open: '(', close: ')', args: inner.args}, nil
}

// matrix reads a matrix environment behind \begin.
func (p *parser) matrix() (*node, error) {
	name, ok := p.raw()
	if !ok {
		return nil, p.errorf(`\begin without a name`)
	}
	if !strings.Contains(name, "matrix") && name != "array" {
		return nil, p.errorf("the environment %q is not a matrix", brief(name))
	}
	if name == "array" {
		_, _ = p.raw() // alignment of the columns
	}
	m := &node{kind: kMatrix}
	p.brackets++
	defer func() { p.brackets-- }()
	for row := 0; ; {
		if p.takeString(`\end`) {
			_, _ = p.raw()
			return m, m.checkShape(row)
		}
		cell, err := p.relation()
		if err != nil {
			return nil, err
		}
		m.args = append(m.args, cell)
		row++
		switch {
		case p.takeByte('&'):
		case p.take("cr"):
			if err := m.endRow(&row); err != nil {
				return nil, err
			}
		case p.command() == "end":
			if err := m.endRow(&row); err != nil {
				return nil, err
			}
		default:
			return nil, p.errorf("%q between the cells of a matrix", brief(p.s[p.i:]))
		}
	}
}

// endRow closes a row of a number of cells.
func (n *node) endRow(cells *int) error {
	if n.cols == 0 {
		n.cols = *cells
	}
	if n.cols != *cells {
		return errRagged
	}
	*cells = 0
	return nil
}

func (n *node) checkShape(open int) error {
	if open != 0 || len(n.args) == 0 || n.cols == 0 {
		return errRagged
	}
	return nil
}
