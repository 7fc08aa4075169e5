// Package curate decides which problems a run trains on, and says of every other one why not.
//
// Invariants:
//   - Every input row is either kept or removed once, with one reason and a detail that a person can check.
//   - Kept problems stay in their order; their answers are integers in plain digits.
//   - The result is a function of the input and the options.
package curate

import (
	"fmt"

	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/verify"
)

// Reason is why a row was removed.
type Reason string

// The reasons, in the order in which filters run.
const (
	BadRow            Reason = "bad_row"            // not a problem with an answer
	NotInteger        Reason = "answer_not_integer" // units, text, fractions, several values
	TooManyDigits     Reason = "answer_too_long"    // an integer that would cost the verifier time
	PromptOverlong    Reason = "prompt_overlong"    // the first prompt has more tokens than allowed
	AnswerLeak        Reason = "answer_leak"        // the text states its own answer
	ConflictingAnswer Reason = "conflicting_answer" // the same text with different answers: none of them can be trusted
	Duplicate         Reason = "duplicate"          // the same text as an earlier row
	BenchmarkOverlap  Reason = "benchmark_overlap"  // shares a run of words, or a whole short text, with a benchmark
	HeldOutOverlap    Reason = "held_out_overlap"   // the same with the run's own held-out problems
)

// Defaults of Options.
const (
	DefaultNGram     = 8  // words (rStar2-Agent §5.1)
	DefaultMaxDigits = 18 // fits in 64 bits; Project Euler has answers with millions of digits (rStar2-Agent §4.2)
)

// Options says what the filters compare with and how strict they are. Zero values are the defaults; a filter without
// anything to compare with removes nothing.
type Options struct {
	BadRows    []problem.BadRow // rows that reading refused: they are counted and reported as removed
	NGram      int              // words of a shared run that make an overlap
	MaxDigits  int
	HeldOut    []problem.Problem // the run's own held-out problems
	HeldOutRun bool              // compare with HeldOut by runs of words as with benchmarks; else by whole text
	// PromptTokens counts the tokens of a problem's first prompt; problems above MaxPromptTokens are removed. nil: no limit.
	PromptTokens    func(text string) int
	MaxPromptTokens int
}

// row is an input problem on its way through the filters.
type row struct {
	problem.Problem
	removed *Removal
}

// Curate returns the problems to train on and what became of every row. Each list of benchmarks is one benchmark.
func Curate(in []problem.Problem, benchmarks [][]problem.Problem, opt Options) ([]problem.Problem, Report) {
	opt = opt.withDefaults()
	rows := make([]row, len(in))
	for i, p := range in {
		rows[i].Problem = p
	}
	forEach(rows, opt.checkRow)
	removeRepeats(rows)
	removeOverlaps(rows, benchmarks, opt)
	return finish(rows, opt.BadRows)
}

func (o Options) withDefaults() Options {
	if o.NGram <= 0 {
		o.NGram = DefaultNGram
	}
	if o.MaxDigits <= 0 {
		o.MaxDigits = DefaultMaxDigits
	}
	return o
}

// forEach gives every row that is still in to check, which returns a reason or "".
func forEach(rows []row, check func(r *row) (Reason, string)) {
	for i := range rows {
		if rows[i].removed != nil {
			continue
		}
		if reason, detail := check(&rows[i]); reason != "" {
			rows[i].remove(reason, detail)
		}
	}
}

func (r *row) remove(reason Reason, detail string) {
	r.removed = &Removal{ID: r.ID, Reason: reason, Detail: detail}
}

// checkRow runs the filters that look at one row alone, and writes the answer in plain digits.
func (o Options) checkRow(r *row) (Reason, string) {
	if len(textTokens(r.Problem.Problem)) == 0 {
		return BadRow, "the problem has no text"
	}
	answer, ok := verify.Integer(r.Answer)
	if !ok || hasPoint(r.Answer) {
		return NotInteger, fmt.Sprintf("answer %q, want one integer", shorten(r.Answer))
	}
	digits := answer.String()
	if n := len(answer.Abs(answer).String()); n > o.MaxDigits {
		return TooManyDigits, fmt.Sprintf("answer has %d digits, want at most %d", n, o.MaxDigits)
	}
	r.Answer = digits
	if leak, ok := leakOf(r.Problem.Problem, digits); ok {
		return AnswerLeak, fmt.Sprintf("the text says %q", shorten(leak))
	}
	if o.PromptTokens != nil {
		if n := o.PromptTokens(r.Problem.Problem); n > o.MaxPromptTokens {
			return PromptOverlong, fmt.Sprintf("the prompt has %d tokens, want at most %d", n, o.MaxPromptTokens)
		}
	}
	return "", ""
}

func finish(rows []row, bad []problem.BadRow) ([]problem.Problem, Report) {
	report := Report{Rows: len(rows) + len(bad), Removed: []Removal{}}
	for _, b := range bad {
		report.Removed = append(report.Removed, Removal{ID: fmt.Sprintf("line-%d", b.Line), Reason: BadRow, Detail: b.Reason})
	}
	kept := []problem.Problem{}
	for _, r := range rows {
		if r.removed != nil {
			report.Removed = append(report.Removed, *r.removed)
			continue
		}
		kept = append(kept, r.Problem)
	}
	report.Kept, report.Digest = len(kept), Digest(kept)
	report.Counts = countReasons(report.Removed)
	return kept, report
}
