package verify

import (
	"math"
	"slices"
	"sort"
)

// span is an interval of real numbers. Its ends are exact; their values only order them.
type span struct {
	low, high         *node
	from, to          float64
	openLow, openHigh bool
}

var (
	minusInfinity = negated(sym("oo"))
	infinity      = sym("oo")
	everything    = span{minusInfinity, infinity, math.Inf(-1), math.Inf(1), true, true}
)

// realSets compares two sets of real numbers, given as intervals, unions, finite sets or conditions on one variable.
func (c *comparer) realSets(gold, pred *node) Verdict {
	a, ok := spans(gold)
	b, fine := spans(pred)
	if !ok || !fine {
		return unknown(PathInterval, "%s and %s are not both sets of real numbers that can be read", gold.show(), pred.show())
	}
	a, b = joined(a), joined(b)
	if len(a) != len(b) {
		return wrong(PathInterval, "%d intervals, not %d", len(b), len(a))
	}
	return all(PathInterval, len(a), func(i int) Verdict {
		if a[i].openLow != b[i].openLow || a[i].openHigh != b[i].openHigh {
			return wrong(PathInterval, "an end is open on one side and closed on the other")
		}
		return all(PathInterval, 2, func(end int) Verdict {
			if end == 0 {
				return c.ends(a[i].low, b[i].low)
			}
			return c.ends(a[i].high, b[i].high)
		})
	})
}

func (c *comparer) ends(gold, pred *node) Verdict {
	if infinite(gold) || infinite(pred) {
		if gold.String() == pred.String() {
			return correct(PathInterval)
		}
		return wrong(PathInterval, "%s is not %s", pred.show(), gold.show())
	}
	return c.scalars(gold, pred)
}

func infinite(n *node) bool {
	return n.String() == infinity.String() || n.String() == minusInfinity.String()
}

// spans reads a set of real numbers.
func spans(n *node) ([]span, bool) {
	switch n.kind {
	case kTuple:
		if len(n.args) != 2 {
			return nil, false
		}
		s, ok := interval(n.args[0], n.args[1], n.open == '(', n.close == ')')
		return []span{s}, ok
	case kSet, kList:
		return memberSpans(n.args)
	case kUnion:
		return combined(n)
	case kRel:
		return condition(n)
	}
	if n.scalar() {
		return memberSpans([]*node{n})
	}
	return nil, false
}

func memberSpans(args []*node) ([]span, bool) {
	var out []span
	for _, a := range args {
		if a.kind == kRel { // several conditions of which one holds
			s, ok := condition(a)
			if !ok {
				return nil, false
			}
			out = append(out, s...)
			continue
		}
		if a.kind == kTuple {
			s, ok := spans(a)
			if !ok {
				return nil, false
			}
			out = append(out, s...)
			continue
		}
		s, ok := interval(a, a, false, false)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

func interval(low, high *node, openLow, openHigh bool) (span, bool) {
	from, ok := realValue(low)
	to, fine := realValue(high)
	return span{low, high, from, to, openLow || math.IsInf(from, 0), openHigh || math.IsInf(to, 0)}, ok && fine && from <= to
}

func realValue(n *node) (float64, bool) {
	switch n.String() {
	case infinity.String():
		return math.Inf(1), true
	case minusInfinity.String():
		return math.Inf(-1), true
	}
	if !n.scalar() || !numeric(n) {
		return 0, false
	}
	b, err := n.at(nil)
	return real(b.mid), err == nil && b.real
}

func combined(n *node) ([]span, bool) {
	a, ok := spans(n.args[0])
	b, fine := spans(n.args[1])
	switch {
	case !ok || !fine:
		return nil, false
	case n.name == "cup":
		return append(slices.Clone(a), b...), true
	case n.name == "cap":
		return intersection(a, b), true
	}
	return intersection(a, complement(b)), true
}

// joined sorts spans and joins those that touch. Empty ones go.
func joined(s []span) []span {
	s = slices.DeleteFunc(slices.Clone(s), func(x span) bool { return x.from == x.to && (x.openLow || x.openHigh) })
	sort.SliceStable(s, func(i, j int) bool {
		return s[i].from < s[j].from || s[i].from == s[j].from && !s[i].openLow && s[j].openLow
	})
	var out []span
	for _, x := range s {
		if len(out) == 0 {
			out = append(out, x)
			continue
		}
		last := &out[len(out)-1]
		if x.from > last.to || x.from == last.to && x.openLow && last.openHigh {
			out = append(out, x)
			continue
		}
		if x.to > last.to || x.to == last.to && !x.openHigh {
			last.to, last.high, last.openHigh = x.to, x.high, x.openHigh
		}
	}
	return out
}

func intersection(a, b []span) []span {
	var out []span
	for _, x := range a {
		for _, y := range b {
			s := x
			if y.from > x.from || y.from == x.from && y.openLow {
				s.from, s.low, s.openLow = y.from, y.low, y.openLow
			}
			if y.to < x.to || y.to == x.to && y.openHigh {
				s.to, s.high, s.openHigh = y.to, y.high, y.openHigh
			}
			if s.from < s.to || s.from == s.to && !s.openLow && !s.openHigh {
				out = append(out, s)
			}
		}
	}
	return out
}

func complement(s []span) []span {
	rest := []span{everything}
	for _, x := range s {
		parts := []span{
			{minusInfinity, x.low, math.Inf(-1), x.from, true, !x.openLow},
			{x.high, infinity, x.to, math.Inf(1), !x.openHigh, true},
		}
		rest = intersection(rest, parts)
	}
	return rest
}
