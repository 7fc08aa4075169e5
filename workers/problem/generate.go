package problem

import (
	"fmt"

	"github.com/restar-rl/restar/kernels/philox"
)

// Split is a part of all generated problems.
type Split int

// The splits. Their numbers are part of every recorded run: append, never renumber.
const (
	Train   Split = 1 // for demonstrations and reinforcement learning
	Test    Split = 2 // the wordings of Train, other numbers
	HeldOut Split = 3 // other numbers, in wordings that the other splits never use
)

func (s Split) String() string {
	switch s {
	case Train:
		return "train"
	case Test:
		return "test"
	case HeldOut:
		return "held-out"
	}
	return fmt.Sprintf("split %d", int(s))
}

// splitOf says which split a problem's numbers belong to, for every seed: three fifths are for training.
func splitOf(f family, n []int64) Split {
	h := uint64(14695981039346656037) // FNV-1a, 64 bits
	for _, c := range []byte(fmt.Sprint(f.name, n)) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	switch h >> 33 % 5 {
	case 0:
		return Test
	case 1:
		return HeldOut
	}
	return Train
}

// maxAttempts bounds the draws for one problem; a family that gives nothing new in as many is used up.
const maxAttempts = 400

// Generate returns n different problems of a split, the kinds taking turns. It is an error to ask for more than there are.
func Generate(seed uint64, n int, split Split) ([]Problem, error) {
	all := families()
	seen := make(map[string]bool, n)
	problems := make([]Problem, 0, n)
	for i := range n {
		q, ok := question{}, false
		for turn := 0; turn < len(all) && !ok; turn++ {
			q, ok = newQuestion(seed, i, turn, split, all[(i+turn)%len(all)], seen)
		}
		if !ok {
			return nil, fmt.Errorf("generated problems: %d of the %s split asked for, found only %d different ones", n, split, i)
		}
		seen[q.text] = true
		problems = append(problems, Problem{
			ID:      fmt.Sprintf("%s-%05d-%s", split, i, q.family.name),
			Problem: q.text,
			Answer:  fmt.Sprint(q.family.answer(q.numbers)),
		})
	}
	return problems, nil
}

// question is a problem before its answer is written down.
type question struct {
	family  family
	numbers []int64
	text    string
}

// newQuestion draws until the numbers are usable, belong to the split and give a text that is not in seen.
func newQuestion(seed uint64, ordinal, turn int, split Split, f family, seen map[string]bool) (question, bool) {
	for attempt := range maxAttempts {
		d := newDice(seed, philox.Address{Purpose: philox.Generate, Stage: int(split), Ordinal: ordinal, Sample: attempt, Turn: turn})
		n := f.draw(d)
		if !f.usable(n) || splitOf(f, n) != split {
			continue
		}
		if text := fill(f.wording(split, d), n); !seen[text] {
			return question{f, n, text}, true
		}
	}
	return question{}, false
}

func (f family) wording(split Split, d *dice) string {
	known := len(f.wordings) - 1
	if split == HeldOut {
		return f.wordings[known]
	}
	return f.wordings[d.below(known)]
}
