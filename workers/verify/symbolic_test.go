package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/sandbox"
)

func TestSympyProvesWhatTheNormalFormDoesNot(t *testing.T) {
	v := NewVerifier(pool(t), Options{})
	defer v.Close()
	pairs := append(SymbolicPairs(2),
		Pair{`e^{i\pi}+2`, `1`}, Pair{`\tan\frac{\pi}{8}`, `\sqrt{2}-1`}, Pair{`\cos\frac{\pi}{12}`, `\frac{\sqrt{6}+\sqrt{2}}{4}`}, Pair{`\arctan 1`, `\frac{\pi}{4}`},
		Pair{`\sqrt[3]{2+\sqrt{5}}`, `\frac{1+\sqrt{5}}{2}`}, Pair{`\{\sqrt{3+2\sqrt{2}}, 5\}`, `5, 1+\sqrt{2}`}, Pair{`\sin\frac{\pi}{10}`, `\frac{\sqrt{5}-1}{4}`},
		Pair{`(\cos 2x, \sin 2x)`, `(2\cos^2 x - 1, 2\sin x\cos x)`}, Pair{`[0, \sqrt{3+2\sqrt{2}})`, `0 \le x < 1+\sqrt2`}, Pair{`y = \sin 2x`, `y = 2\sin x\cos x`},
		Pair{`\begin{pmatrix}\cos 2x\\0\end{pmatrix}`, `\begin{pmatrix}1-2\sin^2 x\\0\end{pmatrix}`})
	for i, got := range v.JudgeAll(deadline(t), pairs) {
		if got.Outcome != Correct || got.Path != PathSymbolic {
			t.Errorf("%v is %+v, want correct by sympy", pairs[i], got)
		}
		if native := Judge(pairs[i].Gold, pairs[i].Prediction); native.Outcome != Unknown {
			t.Errorf("%v is %+v natively, want unknown", pairs[i], native)
		}
	}
}

func TestSympyMakesNothingCorrectThatIsNot(t *testing.T) {
	v := NewVerifier(pool(t), Options{})
	defer v.Close()
	pairs := []Pair{
		{`\sqrt{3+2\sqrt{2}}`, `2.414213`}, {`\sin 2x`, `2\sin x`}, {`\sqrt{x^2}`, "x"}, {`262537412640768744`, `e^{\pi\sqrt{163}}`}, {"3", `\pi`}, {`\{\sqrt{3+2\sqrt2}, 5\}`, `1+\sqrt2, 6`},
		{`\ln(xy)`, `\ln x\cdot\ln y`}, {`(x+y)^n`, `x^n+y^n`}, {`\frac{1}{x}`, `\frac{1}{x+10^{-30}}`}, {"1", `\sin^2 x`}, {"0", `10^{-40}`}, {`(-1)^n`, `\cos(\pi n)`},
	}
	for i, got := range v.JudgeAll(deadline(t), pairs) {
		if got.Outcome == Correct {
			t.Errorf("%v is %+v", pairs[i], got)
		}
	}
}

func TestAHostileAnswerCostsItsOwnCheckOnly(t *testing.T) {
	v := NewVerifier(pool(t), Options{})
	defer v.Close()
	var pairs []Pair
	for _, pred := range hostile {
		pairs = append(pairs, Pair{`\sin 2x`, pred}, Pair{`\sin 2x`, `2\sin x\cos x`})
	}
	pairs = append(pairs, Pair{`\sin^{40}(x+y+z)\cos^{40}(x-y)`, `\cos^{40}(x-y)(\sin(x+y)\cos z+\cos(x+y)\sin z)^{40}`}, Pair{`\cos 2x`, `1-2\sin^2 x`})
	verdicts := v.JudgeAll(deadline(t), pairs)
	for i, got := range verdicts[:2*len(hostile)] {
		if (got.Outcome == Correct) != (i%2 == 1) {
			t.Errorf("%q is %+v", brief(pairs[i].Prediction), got)
		}
	}
	if last := verdicts[len(verdicts)-1]; last.Outcome != Correct {
		t.Errorf("behind a slow check: %+v, want correct", last)
	}
	if slow := verdicts[len(verdicts)-2]; slow.Outcome == Wrong {
		t.Errorf("a slow check is %+v, want no verdict of wrong", slow)
	}
}

// fakeSandbox answers every batch as told.
type fakeSandbox struct {
	opening error
	answer  func(batch int, input string) (sandbox.Result, error)
	opened  int
	batches int
}

func (f *fakeSandbox) Open(context.Context, sandbox.SessionOptions) (sandbox.Session, error) {
	f.opened++
	return f, f.opening
}

func (f *fakeSandbox) Run(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
	if c.Code != "serve()" {
		return sandbox.Result{Status: sandbox.Success}, nil
	}
	f.batches++
	return f.answer(f.batches, c.Stdin)
}

func (f *fakeSandbox) Close() error { return nil }

// nonceOf finds the nonce in a batch's input.
func nonceOf(input string) string {
	_, rest, _ := strings.Cut(input, `"nonce":"`)
	nonce, _, _ := strings.Cut(rest, `"`)
	return nonce
}

func TestTrap23FailuresOfTheSandboxLeaveAVerdictUnknown(t *testing.T) {
	broken := fmt.Errorf("%w: a machine went away", sandbox.ErrInfrastructure)
	said := func(status sandbox.Status, ended bool, stdout, stderr string) func(int, string) (sandbox.Result, error) {
		return func(_ int, input string) (sandbox.Result, error) {
			fill := strings.NewReplacer("NONCE", nonceOf(input))
			return sandbox.Result{Status: status, SessionEnded: ended, Stdout: fill.Replace(stdout), Stderr: fill.Replace(stderr)}, nil
		}
	}
	for name, f := range map[string]*fakeSandbox{
		"no session":                    {opening: broken},
		"the call is lost":              {answer: func(int, string) (sandbox.Result, error) { return sandbox.Result{}, broken }},
		"time-out":                      {answer: said(sandbox.Timeout, true, "", "")},
		"out of memory":                 {answer: said(sandbox.OOM, true, "", "")},
		"no record":                     {answer: said(sandbox.Success, false, "", "")},
		"a record on stdout":            {answer: said(sandbox.Success, false, "NONCE 0 equal 5\n", "")},
		"a record of another batch":     {answer: said(sandbox.Success, false, "", strings.Repeat("0", 32)+" 0 equal 5\n")},
		"a record without its end":      {answer: said(sandbox.Success, false, "", "NONCE 0 equal 5")},
		"a record of another pair":      {answer: said(sandbox.Success, false, "", "NONCE 7 equal 5\n")},
		"the check took too long":       {answer: said(sandbox.Success, false, "", "NONCE 0 timeout 2000000\n")},
		"the check failed":              {answer: said(sandbox.Success, false, "", "NONCE 0 error:RecursionError 5\n")},
		"no proof, and no word of more": {answer: said(sandbox.Success, false, "", "NONCE 0 open 5\n")},
	} {
		v := NewVerifier(f, Options{})
		got := v.Judge(deadline(t), `\sin 2x`, `2\sin x\cos x`)
		if got.Outcome != Unknown || got.Path != PathSymbolic || !strings.Contains(got.Reason, "; ") {
			t.Errorf("%s: %+v, want unknown with the reason", name, got)
		}
	}
	equal := &fakeSandbox{answer: said(sandbox.Success, false, "", "NONCE 0 equal 5\n")}
	if got := NewVerifier(equal, Options{}).Judge(deadline(t), `\sin 2x`, `2\sin x\cos x`); got.Outcome != Correct {
		t.Errorf("a record of equality: %+v, want correct", got)
	}
}

func TestPairsBehindAKilledSessionAreAskedAgain(t *testing.T) {
	f := &fakeSandbox{answer: func(batch int, input string) (sandbox.Result, error) {
		if batch == 1 {
			return sandbox.Result{Status: sandbox.Timeout, SessionEnded: true, Stderr: nonceOf(input) + " 0 equal 5\n"}, nil
		}
		return sandbox.Result{Status: sandbox.Success, Stderr: nonceOf(input) + " 0 equal 5\n"}, nil
	}}
	v := NewVerifier(f, Options{})
	counts := map[Outcome]int{}
	for _, got := range v.JudgeAll(deadline(t), []Pair{{`\sin 2x`, `2\sin x\cos x`}, {`\sin 2y`, `2\sin y\cos y`}, {`\sin 2z`, `2\sin z\cos z`}}) {
		counts[got.Outcome]++
	}
	if counts[Correct] != 2 || counts[Unknown] != 1 || f.opened != 2 {
		t.Errorf("%v with %d sessions, want the first and the third proved and the one between unknown, with 2 sessions", counts, f.opened)
	}
}

func TestASessionThatHasGrownOldIsReplaced(t *testing.T) {
	f := &fakeSandbox{answer: func(batch int, input string) (sandbox.Result, error) {
		if batch == 2 {
			return sandbox.Result{}, fmt.Errorf("%w: it was idle", sandbox.ErrSessionEnded)
		}
		return sandbox.Result{Status: sandbox.Success, Stderr: nonceOf(input) + " 0 equal 5\n"}, nil
	}}
	v := NewVerifier(f, Options{})
	for _, name := range []string{"x", "y"} {
		if got := v.Judge(deadline(t), `\sin 2`+name, `2\sin `+name+`\cos `+name); got.Outcome != Correct {
			t.Errorf("%+v, want correct", got)
		}
	}
	if f.opened != 2 || f.batches != 3 {
		t.Errorf("%d sessions and %d batches, want 2 and 3", f.opened, f.batches)
	}
}

func TestACancelledCheckEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	f := &fakeSandbox{answer: func(int, string) (sandbox.Result, error) { cancel(); return sandbox.Result{}, context.Canceled }}
	got := NewVerifier(f, Options{}).Judge(ctx, `\sin 2x`, `2\sin x\cos x`)
	if got.Outcome != Unknown || !errors.Is(ctx.Err(), context.Canceled) || f.batches != 1 {
		t.Errorf("%+v after %d batches, want unknown after one", got, f.batches)
	}
}

func TestNothingLargeIsSentToSympy(t *testing.T) {
	for _, text := range []string{"9^{9^9}", "2^{100000}x", "(x+1)^{1000}", `\binom{100000}{5}+x`, "1000!+x", `x^{10^{9}}`, `\sum_{k=1}^{n} k`} {
		a := read(text)
		if a.node == nil {
			t.Fatalf("%q does not parse", text)
		}
		if sent, ok := tree(a.node); ok {
			t.Errorf("%q is sent as %v", text, sent)
		}
	}
	for _, text := range []string{"2^{100}x", "(x+1)^{10}", `\binom{n}{2}`, "n!", "x^n", `e^{i\pi}`, `2^{\log_2 7}`} {
		if _, ok := tree(read(text).node); !ok {
			t.Errorf("%q is not sent", text)
		}
	}
}
