// Package verify finds the final answer in what a model wrote and judges it against a reference answer.
//
// Invariants:
//   - A judgement is correct, wrong or unknown. Unknown says that this verifier cannot decide; it never stands for wrong.
//   - Where the reference is an integer the comparison is exact, over integers of any size, and decisive: there is no
//     tolerance, no percent rule, and no second opinion.
//   - Nothing a model wrote is ever evaluated. Work is linear in the text, and texts are bounded.
//
// Callers pass the model's own words only: a box that a tool printed is not an answer.
package verify

import (
	"fmt"
	"strings"
)

// MaxAnswer is the longest answer that is compared, in bytes: far beyond any answer that problems have, and short enough
// that comparing costs nothing.
const MaxAnswer = 4096

// Outcome is one of three values.
type Outcome string

// The outcomes of a judgement.
const (
	Correct Outcome = "correct"
	Wrong   Outcome = "wrong"
	Unknown Outcome = "unknown"
)

// The rules that decide.
const (
	PathInteger = "integer" // both sides as integers of any size
	PathText    = "text"    // both sides as text, white space and dollar signs aside
)

// Verdict is a judgement, the rule that made it, and the reason where it is not Correct.
type Verdict struct {
	Outcome Outcome
	Path    string
	Reason  string
}

// Judge compares an extracted answer with the reference answer.
func Judge(gold, pred string) Verdict {
	if len(gold) > MaxAnswer {
		return Verdict{Unknown, "", fmt.Sprintf("the reference answer has %d bytes, at most %d are compared", len(gold), MaxAnswer)}
	}
	if strings.TrimSpace(gold) == "" {
		return Verdict{Unknown, "", "the reference answer is empty"}
	}
	if len(pred) > MaxAnswer {
		return Verdict{Wrong, "", fmt.Sprintf("the answer has %d bytes, at most %d are compared", len(pred), MaxAnswer)}
	}
	if want, ok := Integer(gold); ok {
		return judgeInteger(want.String(), pred)
	}
	return judgeText(gold, pred)
}

func judgeInteger(want, pred string) Verdict {
	got, ok := Integer(pred)
	switch {
	case !ok:
		return Verdict{Wrong, PathInteger, fmt.Sprintf("%q is not an integer", brief(pred))}
	case got.String() != want:
		return Verdict{Wrong, PathInteger, fmt.Sprintf("%s is not %s", brief(got.String()), brief(want))}
	}
	return Verdict{Correct, PathInteger, ""}
}

func judgeText(gold, pred string) Verdict {
	switch got := normalText(pred); got {
	case normalText(gold):
		return Verdict{Correct, PathText, ""}
	case "":
		return Verdict{Wrong, PathText, "the answer is empty"}
	}
	return Verdict{Unknown, PathText, fmt.Sprintf("the reference %q is not an integer and the answer %q is written otherwise", brief(gold), brief(pred))}
}

// normalText drops white space, dollar signs and a closing full stop.
func normalText(s string) string {
	s = strings.Join(strings.Fields(s), "")
	s = strings.TrimSuffix(s, ".")
	return strings.Trim(s, "$")
}

// briefLength keeps reasons readable.
const briefLength = 60

func brief(s string) string {
	runes := []rune(s)
	if len(runes) <= briefLength {
		return s
	}
	return string(runes[:briefLength]) + "…"
}
