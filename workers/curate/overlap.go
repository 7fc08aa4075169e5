package curate

import (
	"fmt"
	"strings"

	"github.com/restar-rl/restar/workers/problem"
)

// removeRepeats keeps the first of several rows with the same text, and none where their answers differ.
func removeRepeats(rows []row) {
	groups := map[string][]int{}
	for i, r := range rows {
		if r.removed == nil {
			key := sameText(r.Problem.Problem)
			groups[key] = append(groups[key], i)
		}
	}
	for _, group := range groups { // groups do not touch each other's rows
		removeGroup(rows, group)
	}
}

func removeGroup(rows []row, group []int) {
	first := rows[group[0]].Problem
	other := -1
	for _, i := range group[1:] {
		if rows[i].Answer != first.Answer {
			other = i
			break
		}
	}
	if other >= 0 {
		detail := fmt.Sprintf("the text has the answer %s in %s and %s in %s", first.Answer, first.ID, rows[other].Answer, rows[other].ID)
		for _, i := range group {
			rows[i].remove(ConflictingAnswer, detail)
		}
		return
	}
	for _, i := range group[1:] {
		rows[i].remove(Duplicate, "the same text as "+first.ID)
	}
}

// removeOverlaps removes what shares a run of words with a benchmark or the held-out problems.
func removeOverlaps(rows []row, benchmarks [][]problem.Problem, opt Options) {
	known := newIndex(opt.NGram, true)
	for _, b := range benchmarks {
		known.add(b)
	}
	heldOut := newIndex(opt.NGram, opt.HeldOutRun)
	heldOut.add(opt.HeldOut)
	forEach(rows, func(r *row) (Reason, string) {
		if detail, ok := known.find(r.Problem.Problem); ok {
			return BenchmarkOverlap, detail
		}
		if detail, ok := heldOut.find(r.Problem.Problem); ok {
			return HeldOutOverlap, detail
		}
		return "", ""
	})
}

// index holds the whole texts of some problems and, where runs counts, every run of n words in them. A shared run of n words
// is the same seen from either side; texts of fewer words have no run and overlap only as a whole.
type index struct {
	n    int
	runs bool
	text map[string]string // normalised text -> id
	run  map[string]string // n words -> id
}

func newIndex(n int, runs bool) index {
	return index{n: n, runs: runs, text: map[string]string{}, run: map[string]string{}}
}

func (x index) add(problems []problem.Problem) {
	for _, p := range problems {
		putFirst(x.text, sameText(p.Problem), p.ID)
		if x.runs {
			x.eachRun(p.Problem, func(run string) bool { putFirst(x.run, run, p.ID); return false })
		}
	}
}

func putFirst(m map[string]string, key, id string) {
	if _, ok := m[key]; !ok {
		m[key] = id
	}
}

// find returns what text shares with the index.
func (x index) find(text string) (detail string, found bool) {
	if id, ok := x.text[sameText(text)]; ok {
		return "the same text as " + id, true
	}
	if len(x.run) == 0 {
		return "", false
	}
	found = x.eachRun(text, func(run string) bool {
		id, ok := x.run[run]
		if ok {
			detail = fmt.Sprintf("shares %q with %s", run, id)
		}
		return ok
	})
	return detail, found
}

// eachRun gives every run of n words to visit until it returns true.
func (x index) eachRun(text string, visit func(run string) bool) bool {
	words := wordTokens(text)
	for i := 0; i+x.n <= len(words); i++ {
		if visit(strings.Join(words[i:i+x.n], " ")) {
			return true
		}
	}
	return false
}
