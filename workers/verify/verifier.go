package verify

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Pair is a reference answer and an answer.
type Pair struct{ Gold, Prediction string }

// Verifier judges natively, and asks sympy in a sandbox about what is left open. It is safe for concurrent use; the checks of
// concurrent callers take their turn in one session.
type Verifier struct {
	options Options
	mu      sync.Mutex
	checker checker
	costs   []time.Duration
}

// NewVerifier returns a verifier whose symbolic checks run in sessions of the sandbox; see [SandboxOptions]. A session starts
// with the first check. Close ends it.
func NewVerifier(sandbox Opener, o Options) *Verifier {
	return &Verifier{options: o, checker: checker{opener: sandbox}}
}

// Judge compares one answer.
func (v *Verifier) Judge(ctx context.Context, gold, pred string) Verdict {
	return v.JudgeAll(ctx, []Pair{{gold, pred}})[0]
}

// JudgeAll compares answers; the symbolic checks go to the sandbox in batches. Time-outs and failures of the sandbox leave a
// verdict unknown, with the reason.
func (v *Verifier) JudgeAll(ctx context.Context, pairs []Pair) []Verdict {
	return v.judgeAll(ctx, len(pairs), func(i int, proved map[pair]bool) (Verdict, []question) {
		return v.options.judge(pairs[i].Gold, pairs[i].Prediction, proved)
	})
}

// CompatAll judges whole responses as [Compat] does, with sympy where the released verifier would have asked it.
func (v *Verifier) CompatAll(ctx context.Context, pairs []Pair) []Verdict {
	return v.judgeAll(ctx, len(pairs), func(i int, proved map[pair]bool) (Verdict, []question) {
		return compat(pairs[i].Gold, pairs[i].Prediction, proved)
	})
}

func (v *Verifier) judgeAll(ctx context.Context, n int, judge func(i int, proved map[pair]bool) (Verdict, []question)) []Verdict {
	verdicts := make([]Verdict, n)
	questions := map[pair]question{}
	open := make([][]question, n)
	for i := range n {
		verdicts[i], open[i] = judge(i, nil)
		if verdicts[i].Outcome == Correct || len(open[i]) > maxQuestions {
			open[i] = nil
		}
		for _, q := range open[i] {
			questions[q.pair()] = q
		}
	}
	if len(questions) == 0 {
		return verdicts
	}
	findings := v.ask(ctx, questions)
	for i := range n {
		if verdicts[i].Outcome == Unknown && len(open[i]) > 0 {
			verdicts[i] = settled(i, open[i], findings, judge)
		}
	}
	return verdicts
}

// settled judges again with what has been proved.
func settled(i int, open []question, findings map[pair]finding, judge func(int, map[pair]bool) (Verdict, []question)) Verdict {
	proved := map[pair]bool{}
	var reason string
	failed := false
	for _, q := range open {
		f := findings[q.pair()]
		proved[q.pair()] = f.equal
		failed = failed || f.failed
		if !f.equal {
			reason = f.reason
		}
	}
	again, _ := judge(i, proved)
	if again.Path != PathCompat {
		again.Path = PathSymbolic
	}
	if again.Outcome == Wrong && failed { // what is not proved counts as wrong there, and this was not tried to the end
		again.Outcome = Unknown
	}
	if again.Outcome == Unknown {
		again.Reason += "; " + reason
	}
	return again
}

// ask checks the questions in a fixed order.
func (v *Verifier) ask(ctx context.Context, questions map[pair]question) map[pair]finding {
	keys := make([]pair, 0, len(questions))
	for k := range questions {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b pair) int {
		return slices.Compare([]string{a.gold, a.pred}, []string{b.gold, b.pred})
	})
	list := make([]question, len(keys))
	for i, k := range keys {
		list[i] = questions[k]
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[pair]finding{}
	for i, f := range v.checker.check(ctx, list) {
		out[keys[i]] = f
		if f.cpu > 0 {
			v.costs = append(v.costs, f.cpu)
		}
	}
	return out
}

// MedianCPU returns the median CPU time of the symbolic checks so far, their share of the batch's overhead included, and how
// many there were.
func (v *Verifier) MedianCPU() (time.Duration, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.costs) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(v.costs))
	return sorted[len(sorted)/2], len(sorted)
}

// Close ends the session of the symbolic checks.
func (v *Verifier) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.checker.close()
}
