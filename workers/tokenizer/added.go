package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AddedToken is a token that stands outside the BPE vocabulary and is matched as a whole. Special ones are control
// tokens, which a reader of the text normally does not want to see.
type AddedToken struct {
	ID         int32
	Content    string
	Special    bool
	SingleWord bool // matches only where no word character touches it
	LStrip     bool // takes the white space before it
	RStrip     bool // takes the white space after it
	Normalized bool // is looked for in normalised text, itself normalised; the others are looked for before
}

// matcher finds added tokens in a text, leftmost first and the longest of those.
type matcher struct {
	tokens  map[string]AddedToken
	lengths [256][]int // first byte -> lengths of the tokens that begin with it, longest first
	lone    byte       // the first byte of all tokens, 0 if there are several
}

func newMatcher(tokens []AddedToken, content func(AddedToken) string) *matcher {
	m := &matcher{tokens: map[string]AddedToken{}}
	first := map[byte]bool{}
	for _, a := range tokens {
		text := content(a)
		if text == "" {
			continue
		}
		m.tokens[text] = a
		first[text[0]] = true
		if list := &m.lengths[text[0]]; !slices.Contains(*list, len(text)) {
			*list = append(*list, len(text))
			slices.SortFunc(*list, func(a, b int) int { return b - a })
		}
	}
	if len(first) == 1 {
		for b := range first {
			m.lone = b
		}
	}
	return m
}

// next returns where the first token at or after i lies in text; ok is false when there is none.
func (m *matcher) next(text string, i int) (start, end int, found AddedToken, ok bool) {
	for ; i < len(text); i++ {
		if m.lone != 0 {
			skip := strings.IndexByte(text[i:], m.lone)
			if skip < 0 {
				break
			}
			i += skip
		}
		for _, n := range m.lengths[text[i]] {
			if i+n > len(text) {
				continue
			}
			if a, is := m.tokens[text[i:i+n]]; is {
				return i, i + n, a, true
			}
		}
	}
	return 0, 0, AddedToken{}, false
}

// cut calls between for every stretch of text without a token and found for every token, in order. A token that must be a
// word and is not stays text (tokenizers, AddedVocabulary::find_matches).
func (m *matcher) cut(text string, between func(string), found func(AddedToken)) {
	done := 0
	for i := 0; len(m.tokens) > 0; {
		start, end, a, ok := m.next(text, i)
		if !ok {
			break
		}
		i = end
		if a.SingleWord && (endsWithWord(text[:start]) || startsWithWord(text[end:])) {
			continue
		}
		if a.LStrip {
			start = max(done, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if a.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if done < start {
			between(text[done:start])
		}
		found(a)
		done = end
	}
	if done < len(text) {
		between(text[done:])
	}
}

func endsWithWord(text string) bool {
	r, width := utf8.DecodeLastRuneInString(text)
	return width > 0 && isWord(r)
}

func startsWithWord(text string) bool {
	r, width := utf8.DecodeRuneInString(text)
	return width > 0 && isWord(r)
}

// isWord is \w of Unicode's regular expressions (UTS #18): alphabetic, marks, decimal digits, connectors and joiners.
func isWord(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, laterL, laterM) ||
		r == zeroWidthNonJoiner || r == zeroWidthJoiner
}

// checkAdded demands a text and an id of its own for every added token, by id.
func checkAdded(list []AddedToken) ([]AddedToken, error) {
	added := slices.Clone(list)
	slices.SortStableFunc(added, func(a, b AddedToken) int { return int(a.ID) - int(b.ID) })
	seen := map[string]bool{}
	for i, a := range added {
		switch {
		case a.Content == "" || a.ID < 0 || a.ID >= maxVocab:
			return nil, fmt.Errorf("added token %q has id %d, want a text and an id from 0 to %d", a.Content, a.ID, maxVocab-1)
		case seen[a.Content]:
			return nil, fmt.Errorf("added token %q is listed twice", a.Content)
		case i > 0 && added[i-1].ID == a.ID:
			return nil, fmt.Errorf("added tokens %q and %q both have id %d", added[i-1].Content, a.Content, a.ID)
		case !utf8.ValidString(a.Content):
			return nil, fmt.Errorf("added token %q is not UTF-8", a.Content)
		}
		seen[a.Content] = true
	}
	return added, nil
}
