// Package verify finds the final answer in what a model wrote and judges it against a reference answer.
//
// Invariants:
//   - A judgement is correct, wrong or unknown. Unknown says that this verifier cannot decide; it never stands for wrong. A
//     time-out or a failure of the machine is unknown.
//   - Where the reference is an integer the comparison is exact and decisive: there is no tolerance, no percentage that is
//     also its hundredth, and no second opinion.
//   - Nothing a model wrote is ever evaluated as a program. Answers are parsed by a bounded parser into typed trees; a number
//     whose size is not bounded beforehand is not computed. Texts are bounded, and so is the work.
//
// What each path claims:
//
//   - integer, rational, algebra, equation: exact arithmetic over numbers of any size. Algebra writes both sides as
//     quotients of polynomials in variables, roots of primes, i, and functions, and multiplies across; zero proves equality
//     wherever both sides are defined. It proves no difference.
//   - numeric: both sides are evaluated at several points with a bound on the error of every operation. Values further apart
//     than their bounds prove a difference, with variables taken as positive numbers and principal branches. Values that
//     agree prove nothing and never give correct.
//   - decimal: one side is written as a decimal fraction, which stands for what rounds to it (Options.Decimals places). It is
//     never used where the reference is an integer.
//   - set, interval, tuple, matrix, text, choice: the parts by the paths above.
//   - symbolic: sympy in a sandbox proved that the difference is zero (type Verifier). It never proves a difference.
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

// MaxProse is the longest text in which Options.Prose looks for an answer, in bytes; of a longer one the end is read.
const MaxProse = 1 << 16

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
	PathInteger  = "integer"  // the reference as an integer of any size
	PathText     = "text"     // both sides as text
	PathChoice   = "choice"   // a letter of a multiple choice
	PathRational = "rational" // both sides as exact fractions
	PathDecimal  = "decimal"  // a decimal fraction against what it was rounded from
	PathAlgebra  = "algebra"  // equal in normal form
	PathNumeric  = "numeric"  // different values at some point
	PathTuple    = "tuple"
	PathSet      = "set"
	PathInterval = "interval"
	PathMatrix   = "matrix"
	PathEquation = "equation"
	PathRelation = "relation"
	PathRatio    = "ratio"
	PathUnit     = "unit"
	PathType     = "type"     // things of different types
	PathSymbolic = "symbolic" // sympy in a sandbox
	PathCompat   = "compat"   // the released verifier's rules
)

// Verdict is a judgement, the rule that made it, and the reason where it is not Correct.
type Verdict struct {
	Outcome Outcome `json:"verdict"`
	Path    string  `json:"path"`
	Reason  string  `json:"reason"`
}

// Options say how answers are compared. The zero value compares two bare answers by their values.
type Options struct {
	// Decimals is the number of places to which a decimal fraction is compared with an exact value, 0 for 6 (Math-Verify's
	// float_rounding).
	Decimals int
	// Final demands that an integer is written out: where the reference is 6, the answer 2*3 is wrong. A model that is
	// rewarded for values alone can box the problem instead of its answer.
	Final bool
	// Prose finds the answer in whole texts on both sides. Without it a text is an answer.
	Prose bool
}

// Judge compares an extracted answer with the reference answer by their values.
func Judge(gold, pred string) Verdict { return Options{}.Judge(gold, pred) }

// Judge compares an answer with the reference answer.
func (o Options) Judge(gold, pred string) Verdict {
	v, _ := o.judge(gold, pred, nil)
	return v
}

// judge compares; proved holds the pairs of scalars that are known to be equal. It returns the pairs that are left open.
func (o Options) judge(gold, pred string, proved map[pair]bool) (Verdict, []question) {
	if o.Prose {
		gold, pred = Find(gold), findFor(gold, pred)
	}
	switch {
	case len(gold) > MaxAnswer:
		return Verdict{Unknown, "", fmt.Sprintf("the reference answer has %d bytes, at most %d are compared", len(gold), MaxAnswer)}, nil
	case strings.TrimSpace(gold) == "":
		return Verdict{Unknown, "", "the reference answer is empty"}, nil
	case len(pred) > MaxAnswer:
		return Verdict{Wrong, "", fmt.Sprintf("the answer has %d bytes, at most %d are compared", len(pred), MaxAnswer)}, nil
	}
	c := &comparer{options: o, proved: proved}
	if want, ok := Integer(gold); ok {
		return c.integer(want, pred), c.open
	}
	if strings.TrimSpace(pred) == "" {
		return Verdict{Wrong, PathText, "the answer is empty"}, nil
	}
	return c.answers(read(gold), read(pred)), c.open
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
