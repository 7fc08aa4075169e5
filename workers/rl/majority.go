package rl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// MajAt is the mean over problems of the expectation of MajAtK over all subsets of k of a problem's samples: what k samples would
// have scored, without the noise of choosing them. With as many samples as k it is MajAtK. Every problem needs at least k samples.
func MajAt(problems [][]Graded, k int) (float64, error) {
	scores := make([]float64, len(problems))
	for i, samples := range problems {
		if k < 1 || len(samples) < k {
			return 0, fmt.Errorf("problem %d has %d graded samples; maj@%d needs 1 <= k <= samples", i, len(samples), k)
		}
		scores[i] = majorityOf(samples, k)
	}
	if len(scores) == 0 {
		return 0, errNoProblems
	}
	return mean(scores), nil
}

// votes are how often one answer was given.
type votes struct {
	n       int
	correct bool
}

// ballots counts the answers of a problem, in the order of their first vote, and the samples without one.
func ballots(samples []Graded) (answers []votes, blank int) {
	at := map[string]int{}
	for _, s := range samples {
		if s.Answer == "" {
			blank++
			continue
		}
		i, ok := at[s.Answer]
		if !ok {
			i = len(answers)
			at[s.Answer] = i
			answers = append(answers, votes{})
		}
		answers[i].n++
		answers[i].correct = answers[i].correct || s.Correct
	}
	return answers, blank
}

// majorityOf counts the subsets of k samples by their largest number of votes, and by how many answers have it and how many of
// these are right.
func majorityOf(samples []Graded, k int) float64 {
	answers, blank := ballots(samples)
	right := 0.0
	for most := 1; most <= k; most++ {
		ways := subsets(answers, blank, k, most)
		for ties := 1; ties <= k; ties++ { // in this order: a sum in a map's order would differ in its last bits from run to run
			for rights := 1; rights <= ties; rights++ {
				right += ways[top{ties, rights}] * float64(rights) / float64(ties)
			}
		}
	}
	return right / choose(len(samples), k)
}

// top is how many answers tie for the most votes, and how many of them are right.
type top struct{ ties, right int }

// tally is a part of a choice: how many samples it has taken, and what leads.
type tally struct {
	taken int
	top   top
}

func (t tally) compare(o tally) int {
	return cmp.Or(cmp.Compare(t.taken, o.taken), cmp.Compare(t.top.ties, o.top.ties), cmp.Compare(t.top.right, o.top.right))
}

// subsets counts the choices of k samples in which no answer has more than most votes, by the answers that have exactly so many.
func subsets(answers []votes, blank, k, most int) map[top]float64 {
	ways := map[tally]float64{}
	for b := 0; b <= min(blank, k); b++ {
		ways[tally{taken: b}] = choose(blank, b)
	}
	for _, a := range answers {
		next := map[tally]float64{}
		for _, s := range slices.SortedFunc(maps.Keys(ways), tally.compare) { // counts beyond 2^53 are rounded, so in one order
			w := ways[s]
			for v := 0; v <= min(a.n, most, k-s.taken); v++ {
				to := tally{s.taken + v, s.top}
				if v == most {
					to.top.ties++
					if a.correct {
						to.top.right++
					}
				}
				next[to] += w * choose(a.n, v)
			}
		}
		ways = next
	}
	out := map[top]float64{}
	for s, w := range ways {
		if s.taken == k {
			out[s.top] += w
		}
	}
	return out
}

// choose is the binomial coefficient.
func choose(n, k int) float64 {
	out := 1.0
	for i := 1; i <= k; i++ {
		out = out * float64(n-k+i) / float64(i)
	}
	return out
}
