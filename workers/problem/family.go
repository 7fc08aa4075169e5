package problem

import (
	"fmt"
	"strings"

	"github.com/restar-rl/restar/kernels/philox"
)

// family is one kind of problem: how its numbers are drawn, how it is worded, and the Python expressions that demonstrations
// use for it. {a}, {b} and {c} stand for the numbers.
type family struct {
	name     string
	draw     func(d *dice) []int64
	wordings []string // the last one is kept for the held-out split
	right    expression
	wrong    []expression // each goes astray in a way of its own
}

// expression is a Python expression and what it evaluates to.
type expression struct {
	python string
	value  func(n []int64) int64
}

// program is what a demonstration sends to the tool.
type program struct {
	code   string
	stdout string
}

// maxShown bounds what a program of a demonstration prints: an answer must be short enough to copy.
const maxShown = 9_999_999

// fill writes the numbers into a wording or an expression.
func fill(text string, n []int64) string {
	pairs := make([]string, 0, 6)
	for i, name := range []string{"{a}", "{b}", "{c}"} {
		if i < len(n) {
			pairs = append(pairs, name, fmt.Sprint(n[i]))
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// answer is the value of the right expression.
func (f family) answer(n []int64) int64 { return f.right.value(n) }

// usable reports whether a problem with these numbers teaches anything: its answer is positive and short, and every wrong
// expression gives another number that can be shown.
func (f family) usable(n []int64) bool {
	gold := f.answer(n)
	if gold < 1 || gold > maxShown {
		return false
	}
	for _, w := range f.wrong {
		if v := w.value(n); v == gold || v < 0 || v > maxShown {
			return false
		}
	}
	return true
}

// program prints an expression plus an offset, importing what it needs.
func (e expression) program(n []int64, offset int64) program {
	python := fill(e.python, n)
	switch {
	case offset > 0:
		python += fmt.Sprintf("+%d", offset)
	case offset < 0:
		python += fmt.Sprintf("-%d", -offset)
	}
	return program{e.imports() + "print(" + python + ")", fmt.Sprintf("%d\n", e.value(n)+offset)}
}

func (e expression) imports() string {
	if strings.Contains(e.python, "math.") {
		return "import math\n"
	}
	return ""
}

// dice draws the numbers of one problem, each at its own address.
type dice struct {
	key   philox.Key
	at    philox.Address
	drawn int
}

func newDice(seed uint64, at philox.Address) *dice { return &dice{key: philox.NewKey(seed), at: at} }

// between returns an integer in [low, high].
func (d *dice) between(low, high int64) int64 {
	d.drawn++
	return low + int64(d.key.IntN(d.at.WithToken(d.drawn), int(high-low+1)))
}

// below returns an integer in [0, n).
func (d *dice) below(n int) int { return int(d.between(0, int64(n)-1)) }

// chance returns a number in [0, 1).
func (d *dice) chance() float64 {
	d.drawn++
	return d.key.Uniform(d.at.WithToken(d.drawn))
}
