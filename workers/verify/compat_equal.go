package verify

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// primeTolerance is math_equal's relative tolerance.
const primeTolerance = 1e-4

// mathEqual is math_equal: text, then numbers within 1e-4, a hundredth and a hundredfold included, then parts, then sympy.
func (c *comparer) mathEqual(pred, ref string, pi float64, depth int) bool {
	if depth > maxDepth {
		return false
	}
	pred, ref = primeNumber(pred, pi), primeNumber(ref, pi)
	if len(pred) > 1000 {
		pred = strings.ToValidUTF8(pred[:1000], "")
	}
	if strings.EqualFold(strings.TrimSpace(pred), strings.TrimSpace(ref)) || strings.ReplaceAll(pred, " ", "") == strings.ReplaceAll(ref, " ", "") {
		return true
	}
	p, ok := primeFloat(pred)
	r, fine := primeFloat(ref)
	if ok && fine {
		return closeTo(r/100, p) || closeTo(r, p) || closeTo(r*100, p)
	}
	pred, ref = strings.TrimSpace(pred), strings.TrimSpace(ref)
	if pred == "" || ref == "" {
		return false
	}
	if bareParts(pred, ref) {
		return true
	}
	if same, decided := c.partsEqual(pred, ref, pi, depth); decided {
		return same
	}
	return c.symbolicEqual(pred, ref)
}

var (
	dollarNumber  = regexp.MustCompile(`^\$\d+(\.\d+)?`)
	percentNumber = regexp.MustCompile(`^\d+(\.\d+)?\\?%$`)
)

// primeNumber drops a dollar or percent sign and a base, and gives pi its value in numbers.
func primeNumber(s string, pi float64) string {
	switch {
	case dollarNumber.MatchString(s):
		return s[1:]
	case percentNumber.MatchString(s):
		return strings.TrimRight(s, `\%`)
	}
	if before, _, ok := strings.Cut(s, "_"); ok {
		if f, err := strconv.ParseFloat(before, 64); err == nil {
			return strconv.FormatInt(int64(f), 10)
		}
	}
	if strings.Contains(s, `\pi`) {
		if n := read(s).node; n != nil && n.scalar() && numeric(n) {
			v, err := n.substitute("pi", openBase).at(point{openBase: pi})
			if err == nil && v.real {
				return strconv.FormatFloat(real(v.mid), 'g', 17, 64)
			}
		}
	}
	return s
}

func primeFloat(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(s, "{,}", ""), ",", "")), 64)
	return f, err == nil
}

func closeTo(a, b float64) bool {
	return a == b || math.Abs(a-b) <= primeTolerance*max(math.Abs(a), math.Abs(b))
}

// bareParts compares without brackets.
func bareParts(pred, ref string) bool {
	p, r := pred, ref
	if pred[0] == '[' && strings.HasSuffix(pred, "]") && ref[0] != '(' || pred[0] == '(' && strings.HasSuffix(pred, ")") && ref[0] != '[' {
		p, r = strings.Trim(p, "[]()"), strings.Trim(r, "[]()")
	}
	drop := strings.NewReplacer("{", "", "}", "", "(", "", ")", "")
	return drop.Replace(p) == drop.Replace(r)
}

// partsEqual compares the parts of tuples and lists.
func (c *comparer) partsEqual(pred, ref string, pi float64, depth int) (same, decided bool) {
	bracketed := strings.IndexByte("([", pred[0]) >= 0 && strings.IndexByte(")]", pred[len(pred)-1]) >= 0
	if bracketed && pred[0] == ref[0] && pred[len(pred)-1] == ref[len(ref)-1] && len(pred) > 1 && len(ref) > 1 {
		if c.eachEqual(pred[1:len(pred)-1], ref[1:len(ref)-1], pi, depth) {
			return true, true
		}
	}
	if strings.Contains(pred, ",") && strings.Contains(ref, ",") && strings.Count(pred, ",") == strings.Count(ref, ",") {
		return c.eachEqual(pred, ref, pi, depth), true
	}
	return false, false
}

func (c *comparer) eachEqual(pred, ref string, pi float64, depth int) bool {
	ps, rs := strings.Split(pred, ","), strings.Split(ref, ",")
	if len(ps) != len(rs) || len(ps) > 64 {
		return false
	}
	for i := range ps {
		if !c.mathEqual(strings.TrimSpace(ps[i]), strings.TrimSpace(rs[i]), pi, depth+1) {
			return false
		}
	}
	return true
}

// symbolicEqual is symbolic_equal: a difference that simplifies to zero, or values within the tolerance.
func (c *comparer) symbolicEqual(pred, ref string) bool {
	p, r := read(pred).node, read(ref).node
	if p == nil || r == nil {
		return false
	}
	p, r = p.digits(), r.digits()
	if !p.scalar() || !r.scalar() {
		return false
	}
	if numeric(p) && numeric(r) {
		a, err := p.at(nil)
		b, fail := r.at(nil)
		if err == nil && fail == nil && a.real && b.real && closeTo(real(a.mid), real(b.mid)) {
			return true
		}
	}
	return c.exactly(r, p).Outcome == Correct
}

// digits reads a number in a base by its digits alone.
func (n *node) digits() *node {
	if n.kind != kBase {
		return n
	}
	r, ok := new(big.Rat).SetString(n.name)
	if !ok {
		return n
	}
	return num(r)
}
