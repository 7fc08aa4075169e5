package verify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// pair is two scalars by their texts.
type pair struct{ gold, pred string }

// question is a pair of scalars whose equality is open.
type question struct{ gold, pred *node }

func (q question) pair() pair { return pair{q.gold.String(), q.pred.String()} }

// comparer compares two answers once.
type comparer struct {
	options Options
	proved  map[pair]bool
	open    []question
	work    int
	effort  int
	forms   map[*node]form
	compat  bool // the released verifier's tolerances, for integers too
}

// maxComparisons bounds the comparisons of parts: a set of 60 against a set of 60.
const maxComparisons = 4000

func correct(path string) Verdict { return Verdict{Correct, path, ""} }
func wrong(path, format string, args ...any) Verdict {
	return Verdict{Wrong, path, fmt.Sprintf(format, args...)}
}
func unknown(path, format string, args ...any) Verdict {
	return Verdict{Unknown, path, fmt.Sprintf(format, args...)}
}

// answers compares two answers that are not both integers.
func (c *comparer) answers(gold, pred answer) Verdict {
	if strings.Join(strings.Fields(gold.raw), "") == strings.Join(strings.Fields(pred.raw), "") {
		return correct(PathText)
	}
	if letter, ok := choice(gold.raw); ok {
		if got, ok := choice(pred.raw); ok {
			if got == letter {
				return correct(PathChoice)
			}
			return wrong(PathChoice, "the choice is %s, not %s", got, letter)
		}
		if chosen := standingLetters.FindAllString(commandName.ReplaceAllString(pred.raw, " "), -1); len(chosen) > 1 {
			return wrong(PathChoice, "%q names %d choices", brief(pred.raw), len(chosen))
		}
	}
	if gold.node == nil || pred.node == nil {
		return c.texts(gold, pred)
	}
	v := c.equal(gold.node, pred.node)
	if v.Outcome != Correct && foldText(gold.raw) == foldText(pred.raw) && wordsOnly(gold.raw) {
		return correct(PathText)
	}
	if v.Outcome == Wrong || v.Outcome == Unknown {
		if other := c.decimalComma(gold, pred); other.Outcome == Correct {
			return other
		}
	}
	return v
}

// wordsOnly reports whether a text has no sign of mathematics.
func wordsOnly(raw string) bool {
	s := commandName.ReplaceAllString(raw, "")
	return !strings.ContainsAny(s, "0123456789+-*/^=<>_()[]|") && len(foldText(raw)) > 1
}

// decimalComma reads 2,74 as 2.74 where the other side is one value.
func (c *comparer) decimalComma(gold, pred answer) Verdict {
	for _, side := range []*answer{&gold, &pred} {
		s := decimalCommaForm.ReplaceAllString(side.raw, "$1.$2")
		other := pred.node
		if side == &pred {
			other = gold.node
		}
		if s == side.raw || !other.scalar() {
			continue
		}
		if n, err := parse(s); err == nil && n.kind == kNum {
			side.node = n
			return c.equal(gold.node, pred.node)
		}
	}
	return unknown("", "")
}

// maxWordsDecided is the length of a reference text, in words, up to which another wording is wrong.
const maxWordsDecided = 4

// texts compares answers of which at least one is words.
func (c *comparer) texts(gold, pred answer) Verdict {
	want, got := foldText(gold.raw), foldText(pred.raw)
	switch {
	case want == got && want != "":
		return correct(PathText)
	case sameWords(gold.raw, pred.raw):
		return correct(PathText)
	case strings.ReplaceAll(want, " ", "") == strings.ReplaceAll(got, " ", "") && want != "":
		return correct(PathText)
	case gold.node != nil && !wordsOnly(gold.raw) && gold.node.kind == kNum:
		return wrong(PathText, "%q is not a number", brief(pred.raw))
	case gold.node != nil && !wordsOnly(gold.raw):
		return unknown(PathText, "the answer %q cannot be read as mathematics", brief(pred.raw))
	case strings.Contains(" "+got+" ", " "+want+" "):
		return unknown(PathText, "the answer %q says more than the reference %q", brief(pred.raw), brief(gold.raw))
	case want != "" && len(strings.Fields(want)) <= maxWordsDecided && plainWords(want):
		return wrong(PathText, "%q is not %q", brief(pred.raw), brief(gold.raw))
	}
	return unknown(PathText, "the reference %q is compared by its wording only, and the answer %q has another one", brief(gold.raw), brief(pred.raw))
}

// listSign separates the words of a list.
var listSign = regexp.MustCompile(`[,;]|\band\b|\bor\b`)

// sameWords reports whether two lists have the same words in any order.
func sameWords(gold, pred string) bool {
	sorted := func(raw string) []string {
		var out []string
		for _, part := range listSign.Split(raw, -1) {
			if folded := foldText(part); folded != "" {
				out = append(out, folded)
			}
		}
		slices.Sort(out)
		return out
	}
	a := sorted(gold)
	return len(a) > 1 && slices.Equal(a, sorted(pred))
}

func plainWords(folded string) bool {
	return strings.IndexFunc(folded, func(r rune) bool { return strings.ContainsRune(`^_=<>/0123456789\`, r) }) < 0
}

// equal compares two trees of any types.
func (c *comparer) equal(gold, pred *node) Verdict {
	if c.work++; c.work > maxComparisons {
		return unknown(PathSet, "more than %d comparisons of parts", maxComparisons)
	}
	gold, pred = c.values(gold, pred)
	if gold.String() == pred.String() && gold.unit == pred.unit && gold.percent == pred.percent {
		return gold.itself()
	}
	switch {
	case gold.kind == kRel && pred.kind == kRel:
		return c.relations(gold, pred)
	case gold.kind == kRel || pred.kind == kRel:
		return c.relationAndValue(gold, pred)
	case gold.kind == kUnion || pred.kind == kUnion:
		return c.realSets(gold, pred)
	case collection(gold) || collection(pred):
		return c.collections(gold, pred)
	case gold.kind == kMatrix || pred.kind == kMatrix:
		return c.matrices(gold, pred)
	case gold.kind == kRatio || pred.kind == kRatio:
		return c.ratios(gold, pred)
	case gold.kind == kBase || pred.kind == kBase:
		return c.bases(gold, pred)
	case gold.scalar() && pred.scalar():
		return c.scalars(gold, pred)
	}
	return wrong(PathType, "%s is not of the type of %s", pred.show(), gold.show())
}

// itself is the verdict on two trees of one form.
func (n *node) itself() Verdict {
	if n.kind == kNum {
		return correct(PathRational)
	}
	return correct(PathAlgebra)
}

func collection(n *node) bool { return n.kind == kTuple || n.kind == kSet || n.kind == kList }

// values takes what an assignment names where the other side is no relation: x = 5 and 5. Where both are, names count.
func (c *comparer) values(gold, pred *node) (*node, *node) {
	if pred.kind == kRel && gold.kind != kRel {
		if right, ok := named(pred); ok {
			return gold, right
		}
	}
	if gold.kind == kRel && pred.kind != kRel {
		if right, ok := named(gold); ok && nameable(gold.args[0]) {
			return right, pred
		}
	}
	return gold, pred
}

// all joins the verdicts of parts: one wrong part is wrong, one open part leaves the whole open.
func all(path string, n int, part func(i int) Verdict) Verdict {
	open := Verdict{Correct, path, ""}
	for i := range n {
		switch v := part(i); v.Outcome {
		case Wrong:
			return wrong(path, "part %d: %s", i+1, v.Reason)
		case Unknown:
			open = unknown(path, "part %d: %s", i+1, v.Reason)
		}
	}
	return open
}

func (c *comparer) matrices(gold, pred *node) Verdict {
	if gold.kind != kMatrix || pred.kind != kMatrix {
		return wrong(PathMatrix, "one of the two is not a matrix")
	}
	if gold.cols != pred.cols || len(gold.args) != len(pred.args) {
		return wrong(PathMatrix, "a matrix of %d by %d, not %d by %d", len(pred.args)/pred.cols, pred.cols, len(gold.args)/gold.cols, gold.cols)
	}
	return all(PathMatrix, len(gold.args), func(i int) Verdict { return c.equal(gold.args[i], pred.args[i]) })
}

// ratios compares a : b : c up to a common factor; 12:00 and other times are compared as they are written.
func (c *comparer) ratios(gold, pred *node) Verdict {
	if gold.kind != kRatio || pred.kind != kRatio {
		if gold.scalar() && pred.scalar() {
			return c.scalars(gold, pred)
		}
		return wrong(PathRatio, "one of the two is not a ratio")
	}
	if len(gold.args) != len(pred.args) {
		return wrong(PathRatio, "%d parts, not %d", len(pred.args), len(gold.args))
	}
	for _, a := range append(append([]*node(nil), gold.args...), pred.args...) {
		if !a.scalar() || a.kind == kNum && a.rat.Sign() == 0 {
			return all(PathRatio, len(gold.args), func(i int) Verdict { return c.equal(gold.args[i], pred.args[i]) })
		}
	}
	return all(PathRatio, len(gold.args)-1, func(i int) Verdict {
		return c.scalars(product(gold.args[i], pred.args[i+1]), product(pred.args[i], gold.args[i+1]))
	})
}

// bases compares numbers in a base. The base may be left out of the answer: the problem names it.
func (c *comparer) bases(gold, pred *node) Verdict {
	if gold.kind != kBase {
		return wrong(PathType, "an answer in base %s where the reference has none", pred.rat.RatString())
	}
	switch {
	case pred.kind == kBase && pred.name == gold.name && pred.rat.Cmp(gold.rat) == 0,
		pred.kind == kNum && pred.rat.RatString() == gold.name:
		return correct(PathInteger)
	}
	return wrong(PathInteger, "%s is not %s", pred.show(), gold.show())
}
