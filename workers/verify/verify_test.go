package verify

import (
	"fmt"
	"math/big"
	"math/rand"
	"strings"
	"testing"
)

func TestIntegersAreComparedExactly(t *testing.T) {
	for _, c := range []struct {
		gold, pred string
		want       Outcome
	}{
		{"6", "6", Correct}, {"6", "06", Correct}, {"6", "+6", Correct}, {"6", " $6$ ", Correct}, {"6", "6.0", Correct}, {"6", "6.", Correct},
		{"-6", "−6", Correct}, {"0", "-0", Correct}, {"1,800", "1800", Correct}, {"1800", "1{,}800", Correct}, {"1800", `1\,800`, Correct},
		{"1234567", "1 234 567", Correct}, {"6", `\(6\)`, Correct}, {"6", "{6}", Correct}, {"6", "６", Correct},
		{"100000", "100001", Wrong}, {"50", "5000", Wrong}, {"5000", "50", Wrong}, {"50", "0.5", Wrong}, {"6", "6.0001", Wrong}, {"6", "5.9999999", Wrong},
		{"6", "5.99999999999999999999999999999999999999", Wrong}, {"35", "3 5", Wrong}, {"180", "1,80", Wrong}, {"3", "3, 5", Wrong}, {"3", "3 or 5", Wrong},
		{"3", `3 \text{ or } 5`, Wrong}, {"3", `\pm 3`, Wrong}, {"3", "(3, 3)", Wrong}, {"6", "", Wrong}, {"6", "six", Wrong}, {"6", "--6", Wrong}, {"6", "٦", Wrong},
		{"111", "0,111", Wrong}, {"6", "x > 6", Wrong}, {"6", "2x + z = 6", Wrong}, {"6", "1 + 1 = 6", Wrong}, {"6", "6 = 7", Wrong}, {"0", "0x5", Wrong}, {"6000000", `6 \text{ million}`, Correct}, {"6", `6 \text{ million}`, Wrong},
		{"123456789012345678901234567890", "123456789012345678901234567890", Correct},
		{"123456789012345678901234567890", "123456789012345678901234567891", Wrong},
		{"1000000000000000000000", `10^{21}`, Correct}, {"1000000000000000000000", `10^{21}+1`, Wrong},
	} {
		if v := Judge(c.gold, c.pred); v.Outcome != c.want || v.Path != PathInteger || (v.Reason == "") != (c.want == Correct) {
			t.Errorf("Judge(%q, %q) = %+v, want %s by %s", c.gold, c.pred, v, c.want, PathInteger)
		}
	}
}

func TestAnIntegerMayStandWithItsUnitNameOrFrame(t *testing.T) {
	for _, pred := range []string{`336^\circ`, "336°", `336 \text{ cm}^2`, "336 cm", "336 miles", "x = 336", `\angle ABC = 336`, "n=300+36=336", `\boxed{336}`, `\fbox{336}`,
		`\{336\}`, `\$336`, "336%", `\frac{672}{2}`, `\sqrt{112896}`, `\text{336}`, `f(7) = 336`, `336\text{ people}`, "3.36e2", `3.36 \times 10^2`} {
		if v := Judge("336", pred); v.Outcome != Correct {
			t.Errorf("Judge(336, %q) = %+v, want correct", pred, v)
		}
	}
}

func TestAFinalAnswerIsWrittenOut(t *testing.T) {
	final := Options{Final: true}
	for _, pred := range []string{"2*3", "10-4", "3!", `\sqrt{36}`, "6^1", "2+4", `\frac{12}{2}`, `\frac{6}{1}`, "12/2", `0.006 \text{ thousand}`} {
		if v := Judge("6", pred); v.Outcome != Correct {
			t.Errorf("Judge(6, %q) = %+v, want correct by its value", pred, v)
		}
		if v := final.Judge("6", pred); v.Outcome != Wrong {
			t.Errorf("a final answer %q for 6 is %+v, want wrong", pred, v)
		}
	}
	for _, pred := range []string{"6", "6.0", `6 \text{ cm}`, "x = 6", `6^\circ`} {
		if v := final.Judge("6", pred); v.Outcome != Correct {
			t.Errorf("a final answer %q for 6 is %+v, want correct", pred, v)
		}
	}
}

// writings are ways to write an integer.
var writings = []string{"%s", "$%s$", `\boxed{%s}`, "x = %s", `%s \text{ cm}`, `\frac{%[1]s}{1}`, "{%s}", "%s.00", "0 + %s", `\{%s\}`, "%s/1"}

func TestRandomIntegersEqualOnlyThemselves(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 4000 {
		a := new(big.Int).Rand(rng, new(big.Int).Lsh(big.NewInt(1), uint(1+rng.Intn(200))))
		b := new(big.Int).Add(a, big.NewInt(int64(rng.Intn(3)-1)))
		if rng.Intn(8) == 0 {
			b.Mul(b, big.NewInt(100))
		}
		want := Wrong
		if a.Cmp(b) == 0 {
			want = Correct
		}
		pred := fmt.Sprintf(writings[rng.Intn(len(writings))], b)
		if got := Judge(a.String(), pred); got.Outcome != want {
			t.Fatalf("Judge(%v, %s) = %+v, want %s", a, pred, got, want)
		}
	}
}

func TestWhatCannotBeDecidedIsUnknownAndSaysWhy(t *testing.T) {
	for _, c := range []struct {
		gold, pred string
		want       Outcome
	}{
		{`\frac{1}{2}`, `\frac{1}{2}`, Correct}, {`\frac{1}{2}`, ` $\frac{1} {2}$.`, Correct}, {`\frac{1}{2}`, "0.5", Correct}, {"0.5", "", Wrong},
		{"", "5", Unknown}, {strings.Repeat("9", MaxAnswer+1), "5", Unknown}, {`\sin 2x`, `2\sin x\cos x`, Unknown}, {`\sqrt{x^2}`, "x", Unknown},
		{`(-1)^n`, `\cos(n\pi)`, Unknown}, {"x + 1", `\int_0^1 x`, Unknown}, {"the plane is tangent to the sphere", "they touch", Unknown},
	} {
		if v := Judge(c.gold, c.pred); v.Outcome != c.want || (v.Reason == "") != (c.want == Correct) {
			t.Errorf("Judge(%q, %q) = %+v, want %s", brief(c.gold), c.pred, v, c.want)
		}
	}
}

// typed are pairs of every type of answer: the reference, an answer that is equal, and one that is not.
var typed = []struct{ gold, same, other string }{
	{`\frac{3}{4}`, "0.75", "0.76"}, {`\frac34`, "3/4", "4/3"}, {`-\frac{1}{2}`, `\frac{-1}{2}`, `\frac12`}, {"918.5", `918\frac{1}{2}`, `\frac{918}{2}`},
	{`0.\overline{3}`, `\frac13`, "0.3"}, {`1.2\overline{34}`, `\frac{611}{495}`, "1.234"}, {`\frac{1}{12}`, "0.0833333333", "0.083"}, {`\sqrt{2}`, "1.414214", "1.4142"},
	{`28\%`, "0.28", "2800"}, {`28\%`, "28", "29%"}, {`12.5\%`, `12.5 \text{ percent}`, "12.6%"},
	{`5\text{ km}`, `5000 \text{ m}`, `500 \text{ m}`}, {`5\text{ km}`, "5", "5 kg"}, {`90^\circ`, `\frac{\pi}{2}`, `\frac{\pi}{3}`}, {`1.5 \text{ hours}`, "90 minutes", "80 minutes"},
	{"1,234.5", "1234.5", "1,2345"}, {`2.5 \times 10^{-3}`, "0.0025", "0.025"}, {"2.74", "2,74", "274"},
	{"(1,2)", `\left(1, \frac{4}{2}\right)`, "(2,1)"}, {"(1,2,3)", `\begin{pmatrix}1\\2\\3\end{pmatrix}`, "(1,3,2)"}, {`\{1,2,3\}`, "3, 1, 2", "1, 2"},
	{`\{1,2\}`, `\{2,1,1\}`, `\{1\}`}, {"1 or -1", `\pm 1`, "1"}, {`1\pm\sqrt5`, `1+\sqrt5, 1-\sqrt5`, `1+\sqrt5`}, {`\emptyset`, `\{\}`, `\{0\}`},
	{"[0,1)", "[0,1)", "[0,1]"}, {"[0,1)", `0 \le x < 1`, `0 < x < 1`}, {`(-\infty, 3)`, "x < 3", `x \le 3`}, {`x \in [-2,7]`, `-2 \le x \le 7`, `-2 \le x < 7`},
	{`(-\infty,1)\cup(1,\infty)`, `x \ne 1`, `\mathbb{R}`}, {`[0,2]\cup[1,3]`, "[0,3]", "[0,2]"}, {`\mathbb{R}\setminus\{0\}`, `(-\infty,0)\cup(0,\infty)`, `(0,\infty)`},
	{`1\le|z|\le2`, `[-2,-1]\cup[1,2]`, "[1,2]"}, {"2x + 4 > 0", "x > -2", "x > 2"}, {"x < 3", "3 > x", "y < 3"}, {"1 < x < 2", "2 > x > 1", "1 < x < 3"},
	{"y = 2x + 1", "2x - y + 1 = 0", "y = 2x - 1"}, {"x^2 + y^2 = 1", "1 - x^2 - y^2 = 0", "x^2 + y^2 = 2"}, {"x = 5", "5", "6"}, {"x = 5", "x=5", "y=5"},
	{"x = 1, y = 2", "y = 2, x = 1", "x = 2, y = 1"}, {"(p,q) = (3,2)", "(3,2)", "(2,3)"}, {"f(x) = x^2", "f(t) = t^2", "f(x) = x^3"},
	{"3:4", "6:8", "4:3"}, {"3:4", `\frac34`, `\frac43`}, {"12:30", "12:30", "12:31"}, {"2:3:4", "4:6:8", "4:6:9"},
	{"3+4i", "4i+3", "3-4i"}, {"(1+i)^2", "2i", "-2i"}, {`\frac{1}{1+i}`, `\frac{1-i}{2}`, `\frac{1+i}{2}`}, {"e^{i}", "e^i", "e^{-i}"},
	{`\begin{pmatrix}1&2\\3&4\end{pmatrix}`, `\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}`, `\begin{pmatrix}1&3\\2&4\end{pmatrix}`},
	{"x^2+2x+1", "(x+1)^2", "(x+2)^2"}, {`\frac{x^2-1}{x-1}`, "x+1", "x-1"}, {`\frac{\sqrt3}{3}`, `\frac{1}{\sqrt{3}}`, `\frac{\sqrt2}{3}`}, {`\sqrt{12}`, `2\sqrt3`, `3\sqrt2`},
	{`\sqrt{2}\sqrt{3}`, `\sqrt6`, `\sqrt5`}, {`\frac{1}{1+\sqrt2}`, `\sqrt2-1`, `\sqrt2+1`}, {`\sqrt[3]{16}`, `2\sqrt[3]{2}`, `2\sqrt{2}`}, {`2^{n+1}`, `2\cdot2^n`, `2^n+1`},
	{`4^n`, `2^{2n}`, `2^{n+2}`}, {`\tan^2 y+1`, `\sec^2 y`, `\csc^2 y`}, {`\ln 12`, `2\ln 2+\ln 3`, `\ln 13`}, {`\log_2 8 + x`, `x+3`, `x+2`}, {`e^{2x}`, `(e^x)^2`, `e^{x^2}`},
	{`\binom{10}{3}+x`, "120+x", "100+x"}, {"n!", "n!", "n"}, {`\frac{\pi r}{h+r}`, `\frac{r\pi}{r+h}`, `\frac{\pi}{h+r}`}, {`\frac{a}{b}+\frac{c}{d}`, `\frac{ad+bc}{bd}`, `\frac{a+c}{b+d}`},
	{`\text{Evelyn}`, "evelyn", "Carla"}, {`\text{(C)}`, "C", "B"}, {"B", "(B)", "A or B"}, {"B", `\text{B}`, "A B"}, {`\text{(A)}`, "A.", "A, B"}, {`\text{C,E}`, "E, C", "C, D"}, {"red, green", "green and red", "red, blue"},
	{`\text{Alice, Bob}`, "Bob, Alice", "Alice"}, {"(D) Alina", "D", "A"}, {"Yes", "yes.", "No"}, {`\text{east}`, "East", "west"}, {"True", "yes", "false"},
	{"52_8", "52", "53_8"}, {"1010_2", `1010_{2}`, "1011_2"}, {`\max(2,3)x`, "3x", "2x"}, {`\lfloor 3.7\rfloor x`, "3x", "4x"}, {"|x|", `\lvert x\rvert`, "x+1"},
}

func TestEveryTypeOfAnswerIsComparedNatively(t *testing.T) {
	for _, c := range typed {
		for _, side := range []struct {
			pred string
			want Outcome
		}{{c.gold, Correct}, {c.same, Correct}, {c.other, Wrong}} {
			if v := Judge(c.gold, side.pred); v.Outcome != side.want {
				t.Errorf("Judge(%q, %q) = %+v, want %s", c.gold, side.pred, v, side.want)
			}
		}
	}
}

func TestReferencesOfPublicBenchmarksEqualThemselvesAndNoNeighbour(t *testing.T) {
	var file struct {
		Answers []struct{ ID, Answer string }
	}
	readJSON(t, "golds.json", &file)
	if len(file.Answers) < 100 {
		t.Fatalf("%d references, want at least 100", len(file.Answers))
	}
	mutated := 0
	for _, a := range file.Answers {
		for _, form := range []string{"%s", "$%s$", " %s.", `\boxed{%s}`, `\(%s\)`} {
			if v := Judge(a.Answer, fmt.Sprintf(form, a.Answer)); v.Outcome != Correct {
				t.Errorf("%s: %q in the form %q is %+v, want correct", a.ID, a.Answer, form, v)
			}
		}
		at := strings.IndexAny(a.Answer, "0123456789")
		if at < 0 {
			continue
		}
		other := a.Answer[:at] + string('0'+(a.Answer[at]-'0'+1)%10) + a.Answer[at+1:]
		mutated++
		if v := Judge(a.Answer, other); v.Outcome == Correct {
			t.Errorf("%s: %q for %q is %+v", a.ID, other, a.Answer, v)
		}
	}
	if mutated < 80 {
		t.Errorf("%d references had a digit to change, want at least 80", mutated)
	}
}
