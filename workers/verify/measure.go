package verify

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// IntegerPairs returns n pairs of integers as training meets them: spellings of the reference and neighbours of it, half of
// them equal.
func IntegerPairs(n int) []Pair {
	forms := []string{"%s", "$%s$", "%s.0", "x = %s", `%s^\circ`, `\text{%s}`, "%s", `%s \text{ cm}`}
	pairs := make([]Pair, n)
	for i := range pairs {
		value := (i*7919)%100_000 - 1000
		pairs[i] = Pair{strconv.Itoa(value), fmt.Sprintf(forms[i%len(forms)], strconv.Itoa(value+i/len(forms)%2))}
	}
	return pairs
}

// MeasureIntegers returns how many integer verdicts one core gives in a second of CPU time: the best of several rounds, which
// together take about the given time.
func MeasureIntegers(total time.Duration) (perSecond float64) {
	const rounds = 5
	pairs := IntegerPairs(4096)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range rounds {
		began, done := threadCPU(), 0
		for end := time.Now().Add(total / rounds); time.Now().Before(end); {
			for _, p := range pairs {
				Judge(p.Gold, p.Prediction)
			}
			done += len(pairs)
		}
		if spent := threadCPU() - began; spent > 0 {
			perSecond = max(perSecond, float64(done)/spent.Seconds())
		}
	}
	return perSecond
}

func threadCPU() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // always there on Linux
	return time.Duration(ts.Nano())
}

// symbolicForms are equal pairs that the native paths leave open: identities in a variable V, nested roots of the numbers A
// and B.
var symbolicForms = []Pair{
	{`\sqrt{S+2\sqrt{P}}`, `\sqrt{A}+\sqrt{B}`}, {`\sin 2V`, `2\sin V\cos V`}, {`\cos 2V`, `1-2\sin^2 V`}, {`\frac{1}{\sqrt{V+A}}`, `\frac{\sqrt{V+A}}{V+A}`},
	{`\sqrt{S-2\sqrt{P}}`, `\sqrt{B}-\sqrt{A}`}, {`\frac{\sin V}{1+\cos V}`, `\tan\frac{V}{2}`}, {`\sin^4 V - \cos^4 V`, `-\cos 2V`}, {`2^{\log_2 A + V}`, `A \cdot 2^V`},
	{`\sin(V+A)`, `\sin V\cos A+\cos V\sin A`}, {`\cos 3V`, `4\cos^3 V-3\cos V`}, {`A\sin^2\frac{V}{2}`, `\frac{A-A\cos V}{2}`}, {`\binom{V}{2}`, `\frac{V(V-1)}{2}`},
	{`(V+1)!`, `(V+1)\cdot V!`}, {`\sqrt{S+2\sqrt{P}}+V`, `V+\sqrt{A}+\sqrt{B}`}, {`\tan(V+\frac{\pi}{4})`, `\frac{1+\tan V}{1-\tan V}`}, {`\cos^2 V-\sin^2 V+A`, `A+\cos 2V`},
}

// SymbolicPairs returns the forms with another variable and other numbers for each round, so that no answer is one that a
// session has seen.
func SymbolicPairs(round int) []Pair {
	a := []int{2, 3, 5, 7, 11}[round%5]
	b := a + 6 + round
	fill := strings.NewReplacer("V", string("xyzuv"[round%5]), "A", strconv.Itoa(a), "B", strconv.Itoa(b), "S", strconv.Itoa(a+b), "P", strconv.Itoa(a*b))
	pairs := make([]Pair, len(symbolicForms))
	for i, p := range symbolicForms {
		pairs[i] = Pair{fill.Replace(p.Gold), fill.Replace(p.Prediction)}
	}
	return pairs
}

// MeasureSymbolic returns the median CPU time of a symbolic check in a session of the sandbox, its share of the session's work
// included, and the number of checks. The first round, which loads what a session loads once, is left out.
func MeasureSymbolic(ctx context.Context, sandbox Opener) (median time.Duration, checks int, err error) {
	v := NewVerifier(sandbox, Options{})
	defer v.Close()
	for round := range 5 {
		if round == 1 {
			v.costs = nil
		}
		pairs := SymbolicPairs(round)
		for i, verdict := range v.JudgeAll(ctx, pairs) {
			if verdict.Outcome != Correct {
				return 0, 0, fmt.Errorf("symbolic check %v is %s (%s), want correct", pairs[i], verdict.Outcome, verdict.Reason)
			}
		}
	}
	median, checks = v.MedianCPU()
	return median, checks, nil
}
