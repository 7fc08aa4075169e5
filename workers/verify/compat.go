package verify

import (
	"strings"
)

// Compat judges a whole response the way rStar2-Agent's released reward does: PRIME's grader, or else Math-Verify's rules
// (fused_compute_score). It is for comparison with published results. Its tolerances accept wrong integers: 100000 for 100001,
// 50 for 5000. The outcome is unknown only where the released code would have asked sympy; see Verifier.CompatAll.
//
// What it does not reproduce: time-outs that depend on the machine, and what the released code evaluates as Python.
func Compat(gold, response string) Verdict {
	v, _ := compat(gold, response, nil)
	return v
}

// compat runs both graders. With proved, everything that was open has been asked, so what is not proved is wrong.
func compat(gold, response string, proved map[pair]bool) (Verdict, []question) {
	if len(response) > MaxProse {
		response = response[len(response)-MaxProse:]
	}
	if len(gold) > MaxAnswer {
		return Verdict{Unknown, PathCompat, "the reference answer is too long to be compared"}, nil
	}
	c := &comparer{proved: proved, compat: true}
	if why := c.prime(matchAnswer(response), gold); why != "" {
		return Verdict{Correct, PathCompat, "PRIME: " + why}, nil
	}
	if c.mathVerify(gold, response) {
		return Verdict{Correct, PathCompat, "Math-Verify"}, nil
	}
	if proved == nil && len(c.open) > 0 {
		return Verdict{Unknown, PathCompat, "neither grader decides without sympy"}, c.open
	}
	return Verdict{Wrong, PathCompat, "neither PRIME nor Math-Verify"}, nil
}

// mathVerify compares what Math-Verify would extract.
func (c *comparer) mathVerify(gold, response string) bool {
	want, got := Find(gold), findMath(response)
	if len(want) > MaxAnswer || len(got) > MaxAnswer || strings.TrimSpace(want) == "" || strings.TrimSpace(got) == "" {
		return false
	}
	a, b := read(want), read(got)
	if a.node != nil && b.node != nil && b.node.kind == kRel && memberOf(a.node) && !memberOf(b.node) {
		return false // a set is not compared with a condition
	}
	return c.answers(a, b).Outcome == Correct
}

// findMath finds an answer in a response; words alone are none.
func findMath(response string) string {
	found := Find(response)
	if a := read(found); a.node == nil && joinedBoxes(response) == "" && !strings.ContainsAny(found, "$\\0123456789") {
		return ""
	}
	return found
}

// markers are PRIME's, which cut a response down to its answer.
var (
	markersBefore = []string{"answer:", "answer is", "answers are"}
	markersAfter  = []string{"is answer", "is the answer", "are answers", "are the answers"}
	markersLast   = []string{"be ", "is ", "are ", "=", ": ", "get ", "be\n", "is\n", "are\n", ":\n", "get\n"}
)

// matchAnswer is PRIME's extraction.
func matchAnswer(response string) string {
	for _, marker := range markersBefore {
		response = afterMarker(response, marker)
	}
	for _, marker := range markersAfter {
		if i := strings.LastIndex(lower(response), marker); i >= 0 {
			response = strings.TrimSpace(response[:i])
		}
	}
	if boxed, ok := lastBoxOnly(response); ok && boxed != "" {
		response = boxed
	}
	if i := strings.LastIndex(response, ". "); i >= 0 {
		response = strings.TrimSpace(response[:i])
	}
	for _, marker := range markersLast {
		response = afterMarker(response, marker)
	}
	return response
}

func afterMarker(text, marker string) string {
	if i := strings.LastIndex(lower(text), marker); i >= 0 {
		return strings.TrimSpace(text[i+len(marker):])
	}
	return text
}

// lower lowers ASCII letters only, so that places stay.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// lastBoxOnly is PRIME's: from the last \boxed, or else the last \fbox, to the brace that balances.
func lastBoxOnly(s string) (string, bool) {
	i := strings.LastIndex(s, `\boxed`)
	if i < 0 {
		if i = strings.LastIndex(s, `\fbox`); i < 0 {
			return "", false
		}
	}
	depth, open := 0, -1
	for ; i < len(s); i++ {
		switch s[i] {
		case '{':
			if depth++; open < 0 {
				open = i
			}
		case '}':
			if depth--; depth == 0 && open >= 0 {
				return strings.TrimSpace(s[open+1 : i]), true
			}
		}
	}
	return "", false
}
