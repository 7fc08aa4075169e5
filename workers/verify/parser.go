package verify

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxDepth and maxNodes bound the trees: the deepest answers of public benchmarks have a depth below 20 and fewer than 200
	// nodes.
	maxDepth = 48
	maxNodes = 2048
)

var errBounds = errors.New("the answer is nested too deeply or has too many parts")

// parser reads prepared text from left to right. It has no state beyond the place, and looks back nowhere.
type parser struct {
	s        string
	i        int
	depth    int
	nodes    int
	brackets int // open brackets: inside them a comma separates
	bars     int // open bars: inside them a bar closes
}

// parse reads an answer as a typed tree, or says why it cannot.
func parse(text string) (*node, error) {
	p := &parser{s: strings.TrimSpace(text)}
	n, err := p.list()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i < len(p.s) {
		return nil, p.errorf("%q is left over", brief(p.s[p.i:]))
	}
	if two := spread(n); len(two) == 2 {
		return listOf(two), nil
	}
	return n, nil
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %w", p.i, fmt.Errorf(format, args...))
}

// enter counts a part of the answer.
func (p *parser) enter() error {
	p.depth++
	p.nodes++
	if p.depth > maxDepth || p.nodes > maxNodes {
		return errBounds
	}
	return nil
}

// space skips white space and signs without a meaning of their own.
func (p *parser) space() {
	for p.i < len(p.s) {
		switch {
		case strings.IndexByte(" \t\n\r\f\v$", p.s[p.i]) >= 0:
			p.i++
		case strings.HasPrefix(p.s[p.i:], `\$`):
			p.i += 2
		case p.s[p.i] == '\\' && p.i+1 < len(p.s) && strings.IndexByte("()[]", p.s[p.i+1]) >= 0:
			p.i += 2
		default:
			return
		}
	}
}

// peek returns the next byte after white space, 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// command returns the name of the LaTeX command at the place, without taking it.
func (p *parser) command() string {
	p.space()
	if p.i >= len(p.s) || p.s[p.i] != '\\' {
		return ""
	}
	end := p.i + 1
	for end < len(p.s) && letter(p.s[end]) {
		end++
	}
	return p.s[p.i+1 : end]
}

// take consumes one of the commands if it is next.
func (p *parser) take(names ...string) bool {
	c := p.command()
	for _, name := range names {
		if c != "" && c == name {
			p.i += 1 + len(name)
			return true
		}
	}
	return false
}

// word returns the run of letters at the place, without taking it.
func (p *parser) word() string {
	p.space()
	end := p.i
	for end < len(p.s) && letter(p.s[end]) {
		end++
	}
	return p.s[p.i:end]
}

func (p *parser) takeByte(b byte) bool {
	if p.peek() == b {
		p.i++
		return true
	}
	return false
}

func (p *parser) takeString(s string) bool {
	p.space()
	if strings.HasPrefix(p.s[p.i:], s) {
		p.i += len(s)
		return true
	}
	return false
}

func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
func digit(b byte) bool  { return b >= '0' && b <= '9' }

// textCommands hold words.
var textCommands = []string{"text", "textbf", "textit", "textrm", "textnormal", "mbox", "hbox", "mathrm", "mathbf", "mathit", "mathsf",
	"mathtt", "rm", "bf", "it", "boldsymbol", "textsf", "texttt"}

// text takes a text command and returns its words.
func (p *parser) text() (string, bool) {
	start := p.i
	if p.take(textCommands...) {
		if content, ok := p.raw(); ok {
			return strings.TrimSpace(content), true
		}
	}
	p.i = start
	return "", false
}

// raw takes a group in braces and returns its text.
func (p *parser) raw() (string, bool) {
	if p.peek() != '{' {
		return "", false
	}
	end := closing(p.s, p.i)
	if end < 0 {
		return "", false
	}
	content := p.s[p.i+1 : end]
	p.i = end + 1
	return content, true
}

// closing returns the place of the brace that closes the one at open, or -1.
func closing(s string, open int) int {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
