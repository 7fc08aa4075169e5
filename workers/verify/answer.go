package verify

import (
	"regexp"
	"slices"
	"strings"
)

// answer is a text with its reading. node is nil where it reads as words.
type answer struct {
	raw  string // prepared text without frames
	node *node
}

// read parses an answer.
func read(text string) answer {
	s := unframe(prepare(text))
	if words, ok := onlyText(s); ok {
		return answer{raw: words}
	}
	if sentence(s) {
		return answer{raw: s}
	}
	n, err := parse(s)
	if err != nil {
		return answer{raw: s}
	}
	return answer{raw: s, node: n}
}

var wordForm = regexp.MustCompile(`\\?[A-Za-z']+(?:\{[A-Za-z ]*\})?`)

// smallWords are words of two letters that are no product of variables.
var smallWords = []string{"is", "it", "of", "so", "we", "to", "in", "be", "no", "if", "as", "at"}

// sentence reports whether a text has two or more words that are no mathematics; single ones may be products of variables.
func sentence(s string) bool {
	words := 0
	for _, w := range wordForm.FindAllString(s, -1) {
		_, isFunction := functionName(w)
		isFunction = isFunction || slices.Contains(greek, w)
		plain := (len(w) > 2 || slices.Contains(smallWords, strings.ToLower(w))) && w[0] != '\\' && !isFunction && strings.ToUpper(w) != w && !plainUnit(w) && !percentWord(w)
		if plain && !slices.Contains(conjunctions, strings.ToLower(w)) && !slices.Contains([]string{"pi", "inf", "oo", "sq"}, strings.ToLower(w)) {
			words++
		}
	}
	return words > 1
}

// frames surround a whole answer without changing it.
var frames = [][2]string{{"$$", "$$"}, {"$", "$"}, {`\(`, `\)`}, {`\[`, `\]`}, {`\boxed{`, `}`}, {`\fbox{`, `}`}, {"**", "**"}, {`"`, `"`}}

// unframe drops what surrounds an answer, and the sign that ends a sentence.
func unframe(s string) string {
	for {
		before := s
		s = strings.TrimSpace(s)
		for _, f := range frames {
			if len(s) < len(f[0])+len(f[1]) || !strings.HasPrefix(s, f[0]) || !strings.HasSuffix(s, f[1]) {
				continue
			}
			if strings.HasSuffix(f[0], "{") && closing(s, len(f[0])-1) != len(s)-1 {
				continue
			}
			inner := s[len(f[0]) : len(s)-len(f[1])]
			if strings.Contains(inner, strings.Trim(f[0], "{")) {
				continue
			}
			s = inner
		}
		s = strings.TrimRight(strings.TrimSpace(s), ".,;:?") // an exclamation mark may be a factorial
		if strings.HasSuffix(s, `\`) && !strings.HasSuffix(s, `\\`) {
			s = s[:len(s)-1]
		}
		if s == before {
			return s
		}
	}
}

// onlyText returns the words of an answer that is one text command, or plain words of which one cannot be mathematics.
func onlyText(s string) (string, bool) {
	p := &parser{s: s}
	if words, ok := p.text(); ok && p.peek() == 0 && !strings.ContainsAny(words, "0123456789=") {
		return words, true
	}
	return "", false
}

var (
	commandName = regexp.MustCompile(`\\[A-Za-z]+\*?`)
	noise       = regexp.MustCompile(`[^\p{L}\p{N}.\-+'/=<>^_:]+`)
)

// foldText is equal for two texts that differ in case, spacing, frames, punctuation or a leading article.
func foldText(s string) string {
	s = strings.ToLower(commandName.ReplaceAllString(s, " "))
	words := strings.Fields(noise.ReplaceAllString(s, " "))
	for len(words) > 1 && len(words[1]) > 1 && slices.Contains([]string{"the", "a", "an"}, words[0]) {
		words = words[1:]
	}
	folded := strings.Trim(strings.Join(words, " "), ".-:' ")
	if same, ok := truths[folded]; ok {
		return same
	}
	return folded
}

// truths are spellings of the two truth values.
var truths = map[string]string{"true": "yes", "false": "no", "yes": "yes", "no": "no"}

// choiceForm is a letter of a multiple choice: A, (A), A., (A) with its words.
var choiceForm = regexp.MustCompile(`^\(?([A-Z])(?:\)|\.|:|\)\.)?$|^\(([A-Z])\)\s+\S`)

// standingLetters are capital letters that stand alone.
var standingLetters = regexp.MustCompile(`\b[A-J]\b`)

// choice returns the letter that an answer chooses.
func choice(raw string) (string, bool) {
	s := strings.TrimSpace(commandName.ReplaceAllString(raw, " "))
	s = strings.TrimSpace(strings.NewReplacer("{", "", "}", "", "$", "").Replace(s))
	m := choiceForm.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	return m[1] + m[2], true
}
