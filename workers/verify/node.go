package verify

import (
	"math/big"
	"strings"
)

// kind is the type of an answer or of a part of one.
type kind uint8

const (
	kNum    kind = iota // rat, written as a decimal fraction if decimal
	kSym                // name: a variable, or one of the constants pi, e, i, oo
	kAdd                // args
	kMul                // args
	kPow                // args[0] to the power args[1]
	kFn                 // name(args): a function, an index, an operator that is not evaluated
	kTuple              // args between open and close: a tuple, or an interval
	kSet                // args in any order, once each
	kList               // several values without brackets: args, as a set
	kUnion              // name is cup, cap or minus, two args
	kRel                // args[0] ops[0] args[1] ops[1] ...
	kMatrix             // args row by row, cols of them in a row
	kRatio              // a : b : c
	kBase               // name are digits, rat is the base
	kText               // name is the text
)

// node is an answer as a typed tree. It is not changed once it is parsed.
type node struct {
	kind        kind
	rat         *big.Rat
	decimal     bool
	percent     bool // a percent sign stood behind the value; rat and args leave it out
	degree      bool
	reduced     bool // a fraction that was written in other terms
	name        string
	unit        string
	args        []*node
	ops         []string
	open, close byte
	cols        int
}

func num(r *big.Rat) *node          { return &node{kind: kNum, rat: r} }
func integer(n int64) *node         { return num(new(big.Rat).SetInt64(n)) }
func sym(name string) *node         { return &node{kind: kSym, name: name} }
func fn(n string, a ...*node) *node { return &node{kind: kFn, name: n, args: a} }
func sum(a ...*node) *node          { return &node{kind: kAdd, args: a} }
func product(a ...*node) *node      { return &node{kind: kMul, args: a} }
func power(a, b *node) *node        { return &node{kind: kPow, args: []*node{a, b}} }
func negated(a *node) *node {
	if a.kind == kNum {
		c := *a
		c.rat = new(big.Rat).Neg(a.rat)
		return &c
	}
	if a.kind == kMul && a.args[0].kind == kNum {
		return product(append([]*node{negated(a.args[0])}, a.args[1:]...)...)
	}
	return product(integer(-1), a)
}
func quotient(a, b *node) *node { return product(a, power(b, integer(-1))) }

// scalar reports whether the node is one value of a number's type.
func (n *node) scalar() bool { return n.kind <= kFn || n.kind == kRatio && len(n.args) == 2 }

// walk visits the tree from the root until visit returns false.
func (n *node) walk(visit func(*node) bool) bool {
	if !visit(n) {
		return false
	}
	for _, a := range n.args {
		if !a.walk(visit) {
			return false
		}
	}
	return true
}

// symbols adds the names of the free variables to set.
func (n *node) symbols(set map[string]bool) {
	n.walk(func(m *node) bool {
		if m.kind == kSym && !constant(m.name) {
			set[m.name] = true
		}
		return true
	})
}

// constant reports whether a name has a value of its own.
func constant(name string) bool {
	return name == "pi" || name == "e" || name == "i" || name == "oo"
}

// substitute returns the tree with one variable renamed.
func (n *node) substitute(from, to string) *node {
	c := *n
	if c.kind == kSym && c.name == from {
		c.name = to
	}
	c.args = make([]*node, len(n.args))
	for i, a := range n.args {
		c.args[i] = a.substitute(from, to)
	}
	return &c
}

// String writes the tree in prefix form: the same text for the same tree, and only for it.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	switch n.kind {
	case kNum:
		b.WriteString(n.rat.RatString())
		return
	case kSym:
		b.WriteString(n.name)
		return
	case kText:
		b.WriteString(`"` + n.name + `"`)
		return
	case kBase:
		b.WriteString(n.name + "_" + n.rat.RatString())
		return
	}
	b.WriteString([]string{kAdd: "+", kMul: "*", kPow: "^", kFn: n.name, kTuple: string([]byte{n.open, n.close}), kSet: "set", kList: "list",
		kUnion: n.name, kRel: strings.Join(n.ops, " "), kMatrix: "matrix", kRatio: "ratio"}[n.kind])
	b.WriteByte('(')
	for i, a := range n.args {
		if i > 0 {
			b.WriteByte(' ')
		}
		a.write(b)
	}
	b.WriteByte(')')
}
