package verify

import (
	"fmt"
	"strings"
)

// The strength of operators, for brackets.
const (
	looseSum = iota
	looseProduct
	loosePower
	tight
)

// show writes a tree as people read it, for reasons.
func (n *node) show() string { return brief(n.infix(looseSum)) }

// infix writes the tree with brackets where it binds less than its surroundings.
func (n *node) infix(around int) string {
	text, strength := n.shown()
	if strength < around {
		return "(" + text + ")"
	}
	return text
}

func (n *node) shown() (string, int) {
	switch n.kind {
	case kNum:
		return n.number()
	case kAdd:
		return strings.ReplaceAll(n.joined(" + ", looseSum), " + -", " - "), looseSum
	case kMul:
		return n.shownProduct()
	case kPow:
		return n.args[0].infix(tight) + "^" + n.args[1].infix(tight), loosePower
	case kFn:
		name := strings.TrimPrefix(strings.TrimPrefix(n.name, "of "), "index ")
		return name + "(" + n.joined(", ", looseSum) + ")", tight
	case kTuple:
		return string([]byte{n.open}) + n.joined(", ", looseSum) + string([]byte{n.close}), tight
	case kSet:
		return "{" + n.joined(", ", looseSum) + "}", tight
	case kList:
		return n.joined(", ", looseSum), looseSum
	case kUnion:
		return n.joined(" "+n.name+" ", tight), looseSum
	case kRel:
		text := n.args[0].infix(looseSum)
		for i, op := range n.ops {
			text += " " + op + " " + n.args[i+1].infix(looseSum)
		}
		return text, looseSum
	case kRatio:
		return n.joined(":", tight), looseSum
	case kMatrix:
		return fmt.Sprintf("a matrix (%s)", n.joined(", ", looseSum)), tight
	case kBase:
		return n.name + "_" + n.rat.RatString(), tight
	}
	return n.name, tight
}

// number writes a number the way it was written where that is short.
func (n *node) number() (string, int) {
	strength := tight
	if n.rat.Sign() < 0 || !n.rat.IsInt() {
		strength = looseProduct
	}
	if n.decimal {
		if places, exact := n.rat.FloatPrec(); exact {
			return n.rat.FloatString(places), strength
		}
	}
	return n.rat.RatString(), strength
}

func (n *node) joined(by string, around int) string {
	parts := make([]string, len(n.args))
	for i, a := range n.args {
		parts[i] = a.infix(around)
	}
	return strings.Join(parts, by)
}

// shownProduct writes factors with negative powers below a stroke.
func (n *node) shownProduct() (string, int) {
	var above, below []string
	for i, a := range n.args {
		switch {
		case a.kind == kPow && a.args[1].kind == kNum && a.args[1].rat.Cmp(minusOne) == 0:
			below = append(below, a.args[0].infix(loosePower))
		case i == 0 && a.kind == kNum && a.rat.Cmp(minusOne) == 0 && len(n.args) > 1:
			above = append(above, "-")
		default:
			above = append(above, a.infix(loosePower))
		}
	}
	text := strings.Replace(strings.Join(above, "*"), "-*", "-", 1)
	if text == "" {
		text = "1"
	}
	if len(below) > 0 {
		text += "/" + strings.Join(below, "/")
	}
	return text, looseProduct
}
