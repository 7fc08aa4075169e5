package verify

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// coefficients of a polynomial in one variable, lowest first: the test's own algebra.
type coefficients []int

func (a coefficients) times(b coefficients) coefficients {
	out := make(coefficients, len(a)+len(b)-1)
	for i, x := range a {
		for j, y := range b {
			out[i+j] += x * y
		}
	}
	return out
}

func (a coefficients) latex(variable string) string {
	var b strings.Builder
	for k := len(a) - 1; k >= 0; k-- {
		if a[k] != 0 {
			fmt.Fprintf(&b, "%+d%s^{%d}", a[k], variable, k)
		}
	}
	if b.Len() == 0 {
		return "0"
	}
	return b.String()
}

func randomPolynomial(rng *rand.Rand) coefficients {
	out := make(coefficients, 1+rng.Intn(4))
	for i := range out {
		out[i] = rng.Intn(19) - 9
	}
	out[len(out)-1] = 1 + rng.Intn(9)
	return out
}

func TestProductsEqualTheirExpansionsAndNothingElse(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	for range 400 {
		p, q := randomPolynomial(rng), randomPolynomial(rng)
		variable := []string{"x", `\sqrt{t}`, `\theta`, `(\sin y)`, `a_1`, `(u+v)`, `(2^{n})`}[rng.Intn(7)]
		product := fmt.Sprintf(`\left(%s\right)\left(%s\right)`, p.latex(variable), q.latex(variable))
		expanded := p.times(q)
		if v := Judge(product, expanded.latex(variable)); v.Outcome != Correct {
			t.Fatalf("Judge(%s, %s) = %+v, want correct", product, expanded.latex(variable), v)
		}
		quotient := fmt.Sprintf(`\frac{%s}{%s}`, expanded.latex(variable), q.latex(variable))
		if v := Judge(quotient, p.latex(variable)); v.Outcome != Correct && !strings.Contains(v.Reason, "no proof") {
			t.Fatalf("Judge(%s, %s) = %+v, want correct", quotient, p.latex(variable), v)
		}
		expanded[rng.Intn(len(expanded))] += 1 + rng.Intn(3)
		if v := Judge(product, expanded.latex(variable)); v.Outcome != Wrong {
			t.Fatalf("Judge(%s, %s) = %+v, want wrong", product, expanded.latex(variable), v)
		}
	}
}

func TestSumsOfRootsAreMultipliedOutExactly(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for range 400 {
		a, b, c, d, n := rng.Intn(40)-20, 1+rng.Intn(20), rng.Intn(40)-20, 1+rng.Intn(20), []int{2, 3, 5, 6, 7, 10, 15}[rng.Intn(7)]
		product := fmt.Sprintf(`(%d+%d\sqrt{%d})(%d-%d\sqrt{%d})`, a, b, n, c, d, n)
		whole, root := a*c-b*d*n, b*c-a*d
		if v := Judge(product, fmt.Sprintf(`%d%+d\sqrt{%d}`, whole, root, n)); v.Outcome != Correct {
			t.Fatalf("Judge(%s) = %+v, want correct", product, v)
		}
		if v := Judge(product, fmt.Sprintf(`%d%+d\sqrt{%d}`, whole+1, root, n)); v.Outcome != Wrong {
			t.Fatalf("Judge(%s) = %+v, want wrong", product, v)
		}
	}
}

// closeValues are pairs that a comparison with a tolerance takes for equal.
var closeValues = []struct{ a, b string }{
	{`\frac{355}{113}`, `\pi`}, {`\sqrt[3]{31}`, `\pi`}, {`\frac{22}{7}`, `\pi`}, {`e^{\pi}-\pi`, "20"}, {`\frac{\ln(640320^3+744)}{\sqrt{163}}`, `\pi`},
	{`\sqrt{2}+\sqrt{3}`, `\pi`}, {`(1+\frac{1}{1000000})^{1000000}`, "e"}, {`\sqrt{1000001}`, "1000"}, {`1.0000000000000001`, `1.0000000000000002`},
	{`\sqrt{10^{20}+1}-10^{10}`, "0"},
}

func TestValuesThatAlmostAgreeAreNotEqual(t *testing.T) {
	for _, c := range closeValues {
		for _, v := range []Verdict{Judge(c.a, c.b), Judge(c.b, c.a)} {
			if v.Outcome == Correct && v.Path != PathDecimal {
				t.Errorf("%s and %s are %+v", c.a, c.b, v)
			}
		}
	}
}
