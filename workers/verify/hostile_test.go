package verify

import (
	"fmt"
	"strings"
	"testing"
)

// hostile are answers that are made to be expensive, to be evaluated, or to be taken for 6.
var hostile = []string{
	"10**10**10", "9**9**9", "9^{9^{9}}", "9^9^9", `2^{2^{2^{2^{2^{2}}}}}`, "(9^9)^{9^9}", "10^{1000000000}", `\left(10^{100}\right)^{10^{100}}`, "1000000!", "170!!!!!",
	`\binom{1000000}{500000}`, "9" + strings.Repeat("9", 1<<20), strings.Repeat("9", 4000), "1e999999999", "1e-999999999", "0." + strings.Repeat("0", 4000) + "6",
	`__import__("os").system("id")*\pi`, `().__class__.__base__.__subclasses__()`, `eval("6")`, "exec('6')", `\pi*__import__('os')`, `lambda: 6`, "6 if 1 else 7",
	strings.Repeat(" ", 1<<20) + "6", strings.Repeat("$", 4000), strings.Repeat("(", 2000) + "6" + strings.Repeat(")", 2000), strings.Repeat("{", 2000) + "7" + strings.Repeat("}", 2000),
	strings.Repeat(`\frac{1}{`, 400) + "6" + strings.Repeat("}", 400), strings.Repeat(`\sqrt{`, 500) + "36" + strings.Repeat("}", 500), strings.Repeat("-", 3000) + "6",
	strings.Repeat("6,", 2000), strings.Repeat("6+", 2000) + "0", "(" + strings.Repeat("x+", 60) + "y)^{60}", `(a+b+c+d+e+f+g+h)^{64}`, strings.Repeat(`(x+1)`, 500),
	strings.Repeat("x^", 500) + "2", strings.Repeat(`\sin `, 500) + "x", strings.Repeat("|", 2000), `6 \text{ or } 7`, "6 or 7", "6, 7", `6 \pm 1`, "[6,7]", "A or B", "6;7", `6 \text{ or more}`, `6 \text{ million}`, `6\text{ dozen}`, `6 \text{ squared}`,
	`6 \text{ is not the answer}`, `6\text{ thousand people}`, `6 \text{ halves}`, "6x", "6 + x - x", "0x + 6 + y",
	"<answer>6</answer>7", `\boxed{6} \boxed{7}`, "６７", "6\u200b7", "б", "6\x00", "\xff\xfe6", "𝟞𝟟", "Ⅵ", "VI", "6e0e0", "6..0", "6.0.0", "0x6", "0b110", "6j", "6n", "- 6", "6-", "6/0",
	`\frac{6}{0}`, `\frac{0}{0}`, "0^{-1}", `\tan\frac{\pi}{2}`, `\ln 0`, "NaN", "inf", `\infty`, "6_10_2", "6_{99999999999999999999}", `\sum_{k=1}^{10^{9}} k`,
	`\begin{pmatrix}` + strings.Repeat("1&", 1500) + `1\end{pmatrix}`, `\begin{pmatrix}1&2\\3\end{pmatrix}`, `\begin{pmatrix}`, `\end{pmatrix}`, `\begin{evil}6\end{evil}`,
}

func TestTrap22NoHostileAnswerIsTakenForAnInteger(t *testing.T) {
	for _, pred := range hostile {
		v := Judge("6", pred)
		if v.Outcome == Correct {
			t.Errorf("Judge(6, %q) = %+v", brief(pred), v)
		}
		for _, o := range []Options{{Final: true}, {Prose: true}} {
			_ = o.Judge("6", pred)
		}
		for _, gold := range []string{`\frac{1}{3}`, `x^2+1`, `[0,1)`, `\{1,2\}`, `\text{no}`} {
			if v := Judge(gold, pred); v.Outcome == Correct {
				t.Errorf("Judge(%s, %q) = %+v", gold, brief(pred), v)
			}
			_ = Judge(pred, gold)
		}
		_ = Compat("6", pred)
	}
}

func TestASetOfLongPowersEndsUnknown(t *testing.T) {
	var gold, pred []string
	for i := range 40 {
		gold = append(gold, fmt.Sprintf("(a+b+c+%d)^{11}", i))
		pred = append(pred, fmt.Sprintf("(b+c+a+%d)^{11}", 2*i))
	}
	if v := Judge(strings.Join(gold, ", "), strings.Join(pred, ", ")); v.Outcome == Correct {
		t.Errorf("%+v", v)
	}
}

func TestHugePowersAreToldApartWithoutBeingComputed(t *testing.T) {
	for _, pred := range []string{"9**9**9", "9^{9^{9}}", "10^{1000000000}", `2^{2^{2^{2^{2^{2}}}}}`, "3 * 10^{99999}"} {
		if v := Judge("6", pred); v.Outcome != Wrong || v.Path != PathInteger {
			t.Errorf("Judge(6, %q) = %+v, want wrong", pred, v)
		}
	}
	if v := Judge(`9^{9^{9}}`, `9^{9^9}`); v.Outcome != Correct {
		t.Errorf("the same tower is %+v, want correct by its form", v)
	}
	if v := Judge(`9^{9^{9}}+1`, `9^{9^9}`); v.Outcome == Correct {
		t.Errorf("another tower is %+v", v)
	}
}

func TestPiIsNoNumberThatItIsRoundedTo(t *testing.T) {
	for _, pred := range []string{"3.14", "22/7", "3.1416", `\frac{355}{113}`, "3.141592"} {
		if v := Judge(`\pi`, pred); v.Outcome != Wrong {
			t.Errorf(`Judge(\pi, %q) = %+v, want wrong`, pred, v)
		}
	}
	for _, c := range []struct{ gold, pred string }{{"3", `\pi`}, {"314", `100\pi`}, {"3", `\lfloor\pi\rfloor+1`}, {"262537412640768744", `e^{\pi\sqrt{163}}`}} {
		if v := Judge(c.gold, c.pred); v.Outcome == Correct {
			t.Errorf("Judge(%s, %s) = %+v", c.gold, c.pred, v)
		}
	}
}

func FuzzJudge(f *testing.F) {
	for _, c := range typed {
		f.Add(c.gold, c.same)
		f.Add(c.same, c.other)
	}
	for _, pred := range hostile {
		if len(pred) < 200 {
			f.Add("6", pred)
			f.Add(pred, `\frac{x}{2}`)
		}
	}
	f.Fuzz(func(t *testing.T, gold, pred string) {
		v := Judge(gold, pred)
		if v.Outcome == Correct && v.Reason != "" || v.Outcome != Correct && v.Reason == "" {
			t.Errorf("Judge(%q, %q) = %+v", gold, pred, v)
		}
		if want, ok := Integer(gold); ok {
			if got, ok := Integer(pred); ok && (want.Cmp(got) == 0) != (v.Outcome == Correct) {
				t.Errorf("Judge(%q, %q) = %+v", gold, pred, v)
			}
		}
		_ = Options{Prose: true}.Judge(gold, pred)
		_ = Compat(gold, pred)
	})
}
