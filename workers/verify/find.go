package verify

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Find returns the answer that a whole text gives: its last boxes where they form one answer, what it calls its final answer,
// its last formula, its last number; a text that is an answer by itself is returned whole. It is for references and texts of
// unknown make. A model's answer is Extract's: guessing an answer in free text rewards guessing.
func Find(text string) string {
	if len(text) > MaxProse {
		text = text[len(text)-MaxProse:]
	}
	if m := lastMatch(hoped, text); m != "" {
		return afterLast(m, "final answer is")
	}
	if boxes := joinedBoxes(text); boxes != "" {
		return boxes
	}
	if bare(text) || !prose(text) {
		return text
	}
	if found, ok := announced(text); ok {
		return found
	}
	formula, formulaEnd := lastFormula(text)
	number, numberEnd := lastNumber(text)
	switch {
	case formulaEnd > 0 && formulaEnd >= numberEnd:
		return formula
	case numberEnd > 0:
		return number
	}
	return text
}

// findFor finds an answer of the kind that the reference has: a letter of a multiple choice is looked for as a letter.
func findFor(gold, text string) string {
	if letter, ok := choice(gold); ok && len(text) > 1 && joinedBoxes(text) == "" && len(letter) == 1 {
		if found, ok := chosenLetter(text); ok {
			return found
		}
	}
	return Find(text)
}

// bare reports whether a text reads as an answer from end to end.
func bare(text string) bool {
	if len(text) > MaxAnswer {
		return false
	}
	return read(text).node != nil
}

// proseWord is a word of a language between spaces or signs of a sentence.
var proseWord = regexp.MustCompile(`(?:^|[\s*"(])([\p{L}]{2,})(?:[\s.,:;!?*")']|$)`)

// prose reports whether a text has words, so that an answer stands somewhere in it. What has none is an answer, even one that
// cannot be read: its last number is not its value.
func prose(text string) bool {
	for _, m := range proseWord.FindAllStringSubmatch(text, -1) {
		_, isFunction := functionName(m[1])
		if !isFunction && !slices.Contains(greek, m[1]) && !slices.Contains(conjunctions, strings.ToLower(m[1])) {
			return true
		}
	}
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// connector is what may stand between boxes that form one answer: signs, a conjunction, words in a text command.
var connector = regexp.MustCompile(`^(?:[\s,;.&$+]|\\[()\[\],;]|\\q?quad\b|and\b|or\b|\\text\{[^{}]*\})*$|^\s*[a-z]{1,12}\s+(?:and|or)\s*$`)

// maxGap bounds a connector, in bytes.
const maxGap = 60

// joinedBoxes returns the last box, with the boxes before it where only connectors stand between them.
func joinedBoxes(text string) string {
	boxes := allBoxes(text)
	if len(boxes) == 0 {
		return ""
	}
	first := len(boxes) - 1
	for first > 0 {
		gap := text[boxes[first-1].end:boxes[first].start]
		if len(gap) > maxGap || !connector.MatchString(gap) || strings.Contains(gap, "\n\n") {
			break
		}
		first--
	}
	var parts []string
	seen := map[string]bool{}
	for _, b := range boxes[first:] {
		if content := strings.TrimSpace(b.content); !seen[content] {
			seen[content] = true
			parts = append(parts, content)
		}
	}
	return strings.Join(parts, " , ")
}

// box is a \boxed{} with its place.
type box struct {
	start, end int
	content    string
}

// allBoxes lists the outermost complete boxes of a text.
func allBoxes(text string) []box {
	var out []box
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		brace := boxBrace(text, i)
		if brace == 0 {
			if i+1 < len(text) && text[i+1] == '\\' && boxBrace(text, i+1) == 0 {
				i++
			}
			continue
		}
		end := closing(text, brace)
		if end < 0 {
			if rest := strings.TrimRight(text[brace+1:], " .$\n"); end < 0 && len(out) == 0 && balanced(rest) {
				return append(out, box{i, len(text), rest}) // the text ends inside the box
			}
			continue
		}
		out = append(out, box{i, end + 1, text[brace+1 : end]})
		i = end
	}
	return out
}

// balanced reports whether the braces of a text close, so that only the box's own brace is missing.
func balanced(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth--
		}
	}
	return depth == 0 && len(text) < 200
}

var (
	// hoped and announcements are what texts say before their answer, strongest first.
	hoped         = regexp.MustCompile(`(?is)final answer is:?\s*(.{1,400}?)\s*\.?\s*I hope`)
	announcements = []*regexp.Regexp{
		regexp.MustCompile(`(?is)final answer.{0,100}?\bis:?\s+([^\n]{1,400})`),
		regexp.MustCompile(`(?i)answers?\s*(?:is|are)?:\s*([^\n]{1,400})`),
		regexp.MustCompile(`(?i)answers?\s+(?:is|are|=)\s+([^\n]{1,400})`),
	}
)

// announced returns what a text calls its answer.
func announced(text string) (string, bool) {
	for _, re := range announcements {
		m := lastMatch(re, text)
		if m == "" {
			continue
		}
		if bare(firstSentence(m)) {
			return firstSentence(m), true
		}
		if f, ok := firstFormula(m); ok {
			return f, true
		}
		if f, end := lastNumber(m); end > 0 {
			return f, true
		}
	}
	return "", false
}

// afterLast returns what follows the last mention of a phrase, whatever its case.
func afterLast(text, phrase string) string {
	if start := strings.LastIndex(strings.ToLower(text), phrase); start >= 0 {
		text = text[start+len(phrase):]
	}
	return strings.TrimSpace(strings.TrimLeft(text, ": "))
}

// firstSentence cuts a text at a full stop that a space follows.
func firstSentence(s string) string {
	before, _, _ := strings.Cut(s, ". ")
	return strings.TrimSpace(before)
}

func lastMatch(re *regexp.Regexp, text string) string {
	all := re.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

var (
	formula     = `(?:\$\$(?:[^$]|\\\$)+?\$\$|\\\[.+?\\\]|\\\(.+?\\\)|\$(?:\\\$|[^$\n])+?\$)(?:\s*(?:\\?%|[Pp]ercent(?:age)?|[Pp]ct))?`
	formulaForm = regexp.MustCompile(`(?s)` + formula)
	// formulas are formulas that a conjunction joins.
	formulas = regexp.MustCompile(`(?s)` + formula + `(?:\s*(?:,?\s*and|,?\s*or|,)\s*` + formula + `)*`)
	fracForm = regexp.MustCompile(`-?\\frac\{-?\d+\}\{-?\d+\}`)
)

// lastFormula returns the last formula that reads as an answer, and where it ends, 0 if there is none.
func lastFormula(text string) (string, int) {
	all := formulas.FindAllStringIndex(text, -1)
	for i := len(all) - 1; i >= 0; i-- {
		start, end := all[i][0], all[i][1]
		if bare(text[start:end]) && strings.ContainsFunc(text[start:end], func(r rune) bool { return r > ' ' && r != '$' }) {
			return text[start:end], end
		}
		parts := formulaForm.FindAllStringIndex(text[start:end], -1)
		for j := len(parts) - 1; j >= 0 && len(parts) > 1; j-- {
			if part := text[start+parts[j][0] : start+parts[j][1]]; bare(part) {
				return part, start + parts[j][1]
			}
		}
	}
	if f := fracForm.FindAllStringIndex(text, -1); len(f) > 0 {
		last := f[len(f)-1]
		return text[last[0]:last[1]], last[1]
	}
	return "", 0
}

func firstFormula(text string) (string, bool) {
	for _, m := range formulas.FindAllString(text, -1) {
		if bare(m) {
			return m, true
		}
	}
	return "", false
}

// numberForm is a number in plain text with what belongs to it; an arithmetic expression counts whole.
var numberForm = regexp.MustCompile(`(?:^|[\s=*(:（\p{L}])\p{Sc}?(-?\d+(?:\s*[-+*/^÷×]\s*\d+)+|-?(?:\d{1,3}(?:[ ,]\d{3})+(?:\.\d+)?|\d+[.,]\d+|\.\d+|\d+))(\s*(?:\\?%|[Pp]ercent(?:age)?|[Pp]ct))?`)

// lastNumber returns the last number of a text, and where it ends, 0 if there is none.
func lastNumber(text string) (string, int) {
	all := numberForm.FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		return "", 0
	}
	m := all[len(all)-1]
	return strings.TrimSpace(text[m[2]:m[1]]), m[1]
}

var (
	leadingLetter  = regexp.MustCompile(`^\s*(?:\*\*)?\(?([A-J])\)?(?:\*\*)?(?:[.:)。,、\s]|$)`)
	answeredLetter = regexp.MustCompile(`(?i:answer)[^A-Z]{0,40}\b([A-J])\b`)
	standingLetter = regexp.MustCompile(`(?:^|[\s(*])([A-J])(?:[.,:;)*\s。]|$)`)
)

// chosenLetter finds the letter that a text chooses: the one it begins with, the one it calls the answer, the last one.
func chosenLetter(text string) (string, bool) {
	for _, re := range []*regexp.Regexp{leadingLetter, answeredLetter} {
		if m := re.FindStringSubmatch(text); m != nil {
			return m[1], true
		}
	}
	all := standingLetter.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "", false
	}
	return all[len(all)-1][1], true
}
