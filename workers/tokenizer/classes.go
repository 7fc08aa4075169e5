package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is what the pre-tokenizer expressions of Qwen2, Llama-3 and GPT-2 can see of a rune.
type class uint8

const (
	other   class = iota // anything else
	letter               // \p{L}
	number               // \p{N}
	space                // \s but not a line break
	newline              // \r or \n
)

func classifyRune(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case unicode.IsLetter(r) || unicode.Is(laterL, r):
		return letter
	case unicode.IsNumber(r) || unicode.Is(laterN, r):
		return number
	}
	return other
}

// planeClasses holds the classes of U+0000 to U+FFFF, which are nearly all of any text.
type planeClasses [1 << 16]class

var firstPlane = sync.OnceValue(func() *planeClasses {
	table := new(planeClasses)
	for r := range table {
		table[r] = classifyRune(rune(r))
	}
	return table
})

// at returns the class and width of the rune at i; at the end of the text the width is 0.
func (p *planeClasses) at(text string, i int) (class, int) {
	if i >= len(text) {
		return other, 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		return p[b], 1
	}
	r, width := utf8.DecodeRuneInString(text[i:])
	if int(r) < len(p) {
		return p[r], width
	}
	return classifyRune(r), width
}

// run returns the end of the run of runes of class c that starts at i.
func (p *planeClasses) run(text string, i int, c class) int {
	for {
		found, width := p.at(text, i)
		if width == 0 || found != c {
			return i
		}
		i += width
	}
}

// white returns the end of the white space that starts at i, where its last rune begins, and the end of its last line
// break (-1 without one).
func (p *planeClasses) white(text string, i int) (end, last, afterBreak int) {
	end, last, afterBreak = i, i, -1
	for {
		c, width := p.at(text, end)
		if width == 0 || c != space && c != newline {
			return end, last, afterBreak
		}
		last = end
		end += width
		if c == newline {
			afterBreak = end
		}
	}
}
