package tokenizer

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// Qwen2Pattern is the pre-tokenizer expression of Qwen2, Qwen2.5 and Qwen3. Merges never cross its pieces; every digit
// is a piece of its own.
const Qwen2Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// gpt2Pattern is what a bare ByteLevel pre-tokenizer with use_regex stands for.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// splitter cuts a text into pieces whose concatenation is the text.
type splitter func(text string, yield func(piece string))

// newSplitter returns the hand-written splitter for Qwen2Pattern and a regexp2 one for any other expression.
func newSplitter(pattern string) (splitter, error) {
	if pattern == Qwen2Pattern {
		return splitQwen2, nil
	}
	re, err := regexp2.Compile(pattern, regexp2.Unicode)
	if err != nil {
		return nil, fmt.Errorf("pre-tokenizer expression %q: %w", pattern, err)
	}
	return func(text string, yield func(string)) { splitRegexp(re, text, yield) }, nil
}

// splitRegexp yields the matches and whatever lies between them ("Isolated"). Invalid UTF-8 has no runes for an
// expression to match, so such text is one piece.
func splitRegexp(re *regexp2.Regexp, text string, yield func(string)) {
	if !utf8.ValidString(text) {
		yield(text)
		return
	}
	runes := []rune(text)
	done := 0
	for m, err := re.FindRunesMatch(runes); m != nil && err == nil; m, err = re.FindNextMatch(m) {
		if m.Length == 0 {
			continue
		}
		if m.Index > done {
			yield(string(runes[done:m.Index]))
		}
		yield(string(runes[m.Index : m.Index+m.Length]))
		done = m.Index + m.Length
	}
	if done < len(runes) {
		yield(string(runes[done:]))
	}
}

// class is what Qwen2Pattern can see of a rune.
type class uint8

const (
	other   class = iota // anything else, invalid bytes included
	letter               // \p{L}
	number               // \p{N}
	space                // \s but not a line break
	newline              // \r or \n
)

var asciiClass = func() (table [utf8.RuneSelf]class) {
	for r := range table {
		table[r] = classifyRune(rune(r))
	}
	return table
}()

func classifyRune(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	}
	return other
}

// classAt returns the class and width of the rune at i; at the end of the text the width is 0.
func classAt(text string, i int) (class, int) {
	if i >= len(text) {
		return other, 0
	}
	if text[i] < utf8.RuneSelf {
		return asciiClass[text[i]], 1
	}
	r, width := utf8.DecodeRuneInString(text[i:])
	return classifyRune(r), width
}

// skip returns the end of the run of runes that satisfy in, starting at i.
func skip(text string, i int, in func(class) bool) int {
	for {
		c, width := classAt(text, i)
		if width == 0 || !in(c) {
			return i
		}
		i += width
	}
}

func isLetter(c class) bool  { return c == letter }
func isOther(c class) bool   { return c == other }
func isNewline(c class) bool { return c == newline }

// splitQwen2 is Qwen2Pattern written out, one alternative after the other.
func splitQwen2(text string, yield func(string)) {
	for i := 0; i < len(text); {
		end := nextPiece(text, i)
		yield(text[i:end])
		i = end
	}
}

func nextPiece(text string, i int) int {
	if text[i] == '\'' {
		if n := contraction(text[i+1:]); n > 0 {
			return i + 1 + n
		}
	}
	first, width := classAt(text, i)
	second, secondWidth := classAt(text, i+width)
	hasSecond := secondWidth > 0
	switch {
	case first == letter:
		return skip(text, i, isLetter)
	case (first == space || first == other) && hasSecond && second == letter:
		return skip(text, i+width, isLetter)
	case first == number:
		return i + width
	case first == other, text[i] == ' ' && hasSecond && second == other:
		return skip(text, skip(text, i+width, isOther), isNewline)
	}
	return whitespacePiece(text, i)
}

// whitespacePiece ends a piece that starts with white space: after the run's last line break; else before the run's last
// rune where something follows it; else after the run.
func whitespacePiece(text string, i int) int {
	end, last, afterBreak := i, i, -1
	for {
		c, width := classAt(text, end)
		if width == 0 || c != space && c != newline {
			break
		}
		last = end
		end += width
		if c == newline {
			afterBreak = end
		}
	}
	switch {
	case afterBreak > 0:
		return afterBreak
	case end < len(text) && last > i:
		return last
	}
	return end
}

// contraction returns the length of an English contraction after its apostrophe, or 0. Case folding takes U+017F for s.
func contraction(rest string) int {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] | 0x20 {
	case 's', 't', 'm', 'd':
		return 1
	}
	if len(rest) >= 2 && rest[0] == 0xC5 && rest[1] == 0xBF {
		return 2
	}
	if len(rest) < 2 {
		return 0
	}
	switch string([]byte{rest[0] | 0x20, rest[1] | 0x20}) {
	case "re", "ve", "ll":
		return 2
	}
	return 0
}
