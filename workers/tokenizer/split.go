package tokenizer

import (
	"fmt"
	"strings"

	"github.com/dlclark/regexp2"
)

// The pre-tokenizer expressions that are written out by hand. Merges never cross their pieces.
const (
	// Qwen2Pattern is that of Qwen2, Qwen2.5 and Qwen3: every digit is a piece of its own.
	Qwen2Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// Llama3Pattern is that of Llama 3: digits go in threes.
	Llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// GPT2Pattern is what a bare ByteLevel pre-tokenizer with use_regex stands for.
	GPT2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

// splitter cuts valid UTF-8 into pieces. Unless its stage drops something, their concatenation is the text.
type splitter func(text string, yield func(piece string))

// newSplitter returns a hand-written splitter where there is one for the expression, else one that runs it on regexp2, if
// regexp2 is certain to read it as the reference's Oniguruma does.
func newSplitter(pattern string) (splitter, error) {
	switch pattern {
	case Qwen2Pattern:
		return cutWith(func(p *planeClasses, text string, i int) int { return p.wordPiece(text, i, 1) }), nil
	case Llama3Pattern:
		return cutWith(func(p *planeClasses, text string, i int) int { return p.wordPiece(text, i, 3) }), nil
	case GPT2Pattern:
		return cutWith((*planeClasses).gpt2Piece), nil
	}
	re, err := compile(pattern)
	if err != nil {
		return nil, err
	}
	return func(text string, yield func(string)) {
		eachMatch(re, text, func(piece string, _ bool) { yield(piece) })
	}, nil
}

func compile(pattern string) (*regexp2.Regexp, error) {
	plain, err := portable(pattern)
	if err != nil {
		return nil, fmt.Errorf("pre-tokenizer expression %q: %w", pattern, err)
	}
	re, err := regexp2.Compile(plain, regexp2.Unicode)
	if err != nil {
		return nil, fmt.Errorf("pre-tokenizer expression %q: %w", pattern, err)
	}
	return re, nil
}

// eachMatch yields the matches and what lies between them, in order.
func eachMatch(re *regexp2.Regexp, text string, yield func(piece string, matched bool)) {
	runes := []rune(text)
	done := 0
	// A match fails by its time limit only, and there is none.
	for m, err := re.FindRunesMatch(runes); m != nil && err == nil; m, err = re.FindNextMatch(m) {
		if m.Length == 0 {
			continue
		}
		if m.Index > done {
			yield(string(runes[done:m.Index]), false)
		}
		done = m.Index + m.Length
		yield(string(runes[m.Index:done]), true)
	}
	if done < len(runes) {
		yield(string(runes[done:]), false)
	}
}

// cutWith repeats a function that returns the end of the piece that begins at i.
func cutWith(next func(p *planeClasses, text string, i int) int) splitter {
	return func(text string, yield func(string)) {
		p := firstPlane()
		for i := 0; i < len(text); {
			end := next(p, text, i)
			yield(text[i:end])
			i = end
		}
	}
}

// wordPiece is Qwen2Pattern and Llama3Pattern, one alternative after the other; digits is how many numbers make a piece.
func (p *planeClasses) wordPiece(text string, i, digits int) int {
	if text[i] == '\'' {
		if n := contraction(text[i+1:]); n > 0 {
			return i + 1 + n
		}
	}
	first, width := p.at(text, i)
	second, more := p.at(text, i+width)
	hasSecond := more > 0
	switch {
	case first == letter:
		return p.run(text, i, letter)
	case (first == space || first == other) && hasSecond && second == letter:
		return p.run(text, i+width, letter)
	case first == number:
		for ; first == number && digits > 0 && width > 0; digits-- {
			i += width
			first, width = p.at(text, i)
		}
		return i
	case first == other, text[i] == ' ' && hasSecond && second == other:
		return p.run(text, p.run(text, i+width, other), newline)
	}
	end, last, afterBreak := p.white(text, i)
	switch {
	case afterBreak > 0:
		return afterBreak
	case end < len(text) && last > i:
		return last // the last rune belongs to what follows
	}
	return end
}

// gpt2Piece is GPT2Pattern.
func (p *planeClasses) gpt2Piece(text string, i int) int {
	if text[i] == '\'' {
		for _, c := range []string{"s", "t", "re", "ve", "m", "ll", "d"} {
			if strings.HasPrefix(text[i+1:], c) {
				return i + 1 + len(c)
			}
		}
	}
	first, width := p.at(text, i)
	if second, more := p.at(text, i+width); text[i] == ' ' && more > 0 && second != space && second != newline {
		return p.run(text, i+width, second)
	}
	if first != space && first != newline {
		return p.run(text, i, first)
	}
	end, last, _ := p.white(text, i)
	if end < len(text) && last > i {
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
	if len(rest) < 2 {
		return 0
	}
	if rest[0] == 0xC5 && rest[1] == 0xBF {
		return 2
	}
	switch string([]byte{rest[0] | 0x20, rest[1] | 0x20}) {
	case "re", "ve", "ll":
		return 2
	}
	return 0
}
