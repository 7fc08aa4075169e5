package verify

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// prime is PRIME's grader: equal after PRM800K's normalisations, or by sympy, or math_equal with its tolerances. It returns
// which rule accepted, "" for none.
func (c *comparer) prime(given, gold string) string {
	switch {
	case stripString(unwrapText(given)) == stripString(unwrapText(gold)):
		return "MATH normalisation"
	case c.gradeAnswer(given, gold):
		return "PRM800K normalisation"
	case c.mathEqual(given, gold, math.Pi, 0):
		return "math_equal"
	case (strings.Contains(given, `\pi`) || strings.Contains(gold, `\pi`)) && c.mathEqual(given, gold, 3.14, 0):
		return "math_equal with 3.14"
	}
	return ""
}

var enclosingText = regexp.MustCompile(`(?s)^\\text\{(.+?)\}$`)

func unwrapText(s string) string {
	s = strings.TrimSpace(s)
	if m := enclosingText.FindStringSubmatch(s); m != nil {
		return strings.TrimSpace(m[1])
	}
	return s
}

var mathdRules = strings.NewReplacer("\n", "", `\!`, "", `\\`, `\`)

// stripString is the normalisation of the MATH data set.
func stripString(s string) string {
	s = mathdRules.Replace(s)
	for _, r := range [][2]string{{"tfrac", "frac"}, {"dfrac", "frac"}, {`\left`, ""}, {`\right`, ""}, {`^{\circ}`, ""}, {`^\circ`, ""}, {`\$`, ""}} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	s, _, _ = strings.Cut(s, `\text{ `)
	s = strings.ReplaceAll(s, `\%`, "")
	s = strings.ReplaceAll(strings.ReplaceAll(s, " .", " 0."), "{.", "{0.")
	if strings.HasPrefix(s, ".") {
		s = "0" + s
	}
	if left, right, ok := strings.Cut(s, "="); ok && !strings.Contains(right, "=") && len(left) <= 2 {
		s = right
	}
	s = shortRoot.ReplaceAllString(s, `\sqrt{$1}`)
	s = strings.ReplaceAll(s, " ", "")
	s = shortFraction.ReplaceAllString(s, `\frac{$1}{$2}`)
	s = halfFraction.ReplaceAllString(s, `\frac{$1}{`)
	if s == "0.5" {
		return `\frac{1}{2}`
	}
	return slashFraction.ReplaceAllString(s, `\frac{$1}{$2}`)
}

var (
	shortRoot     = regexp.MustCompile(`\\sqrt([^{])`)
	shortFraction = regexp.MustCompile(`\\frac([^{])([^{])`)
	halfFraction  = regexp.MustCompile(`\\frac([^{])\{`)
	slashFraction = regexp.MustCompile(`^(-?[1-9]\d*|0)/(-?[1-9]\d*|0)$`)
)

// prmUnits are words that PRM800K's normalisation drops.
var prmUnits = regexp.MustCompile(`(?:degree|cm|centimeter|meter|mile|second|minute|hour|day|week|month|year|foot|feet|inch|yard|liter)(?:es)?s? *(?:\^[0-9]+)?`)

var (
	properComma = regexp.MustCompile(`(\d),(\d\d\d)($|\D)`)
	commaSpace  = regexp.MustCompile(`,\\! *`)
	circle      = regexp.MustCompile(`\^ *\\circ`)
	minusSpace  = regexp.MustCompile(`- *`)
	mixedSpace  = regexp.MustCompile(`([0-9]) +([0-9])`)
	latexFrac   = regexp.MustCompile(`\\frac\{([^{}]*)\}\{([^{}]*)\}`)
	latexRoot   = regexp.MustCompile(`\\sqrt\{([^{}]*)\}`)
)

var prmRules = strings.NewReplacer(`\%`, "", `\$`, "", "$", "", "%", "", " or ", " , ", " and ", " , ")

// prmNormalize is PRM800K's normalisation.
func prmNormalize(s string) string {
	if m := enclosingText.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	s = prmRules.Replace(s)
	s = strings.NewReplacer("million", "*10^6", "billion", "*10^9").Replace(s)
	s = circle.ReplaceAllString(prmUnits.ReplaceAllString(s, ""), "")
	if len(s) > 1 && s[0] == '{' && s[len(s)-1] == '}' {
		s = s[1 : len(s)-1]
	}
	s = commaSpace.ReplaceAllString(s, "")
	if strings.Contains(s, `\`) {
		s = plainLatex(s)
	}
	s = mixedSpace.ReplaceAllString(minusSpace.ReplaceAllString(s, "-"), "$1+$2")
	s = strings.ToLower(s)
	if n, ok := looseInteger(s); ok {
		return n
	}
	return s
}

// plainLatex writes LaTeX as pylatexenc does for the commands of answers.
func plainLatex(s string) string {
	s = strings.ReplaceAll(fractions.ReplaceAllString(s, `\frac`), `\frac`, ` \frac`)
	s = shortFraction.ReplaceAllString(s, `\frac{$1}{$2}`)
	for range 4 {
		s = latexRoot.ReplaceAllString(latexFrac.ReplaceAllString(s, "$1/$2"), "sqrt($1)")
	}
	s = strings.NewReplacer(`\pi`, "pi", `\pm`, "±", `\infty`, "inf", `\cup`, "U", `\cdot`, "*", `\times`, "*", `\left`, "", `\right`, "", `\{`, "{", `\}`, "}", "{", "", "}", "").Replace(s)
	return strings.TrimSpace(commandName.ReplaceAllString(s, ""))
}

// looseInteger reads a float that is within 1e-7 of an integer, as PRM800K's grader does.
func looseInteger(s string) (string, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(stripCommas(s)), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || math.Abs(f-math.Round(f)) > 1e-7 {
		return "", false
	}
	n, _ := big.NewFloat(f).Int(nil)
	return n.String(), true
}

func stripCommas(s string) string {
	for {
		next := properComma.ReplaceAllString(s, "$1$2$3")
		if next == s {
			return s
		}
		s = next
	}
}

var literalFraction = regexp.MustCompile(`^-?[0-9]+.?/0*[1-9][0-9]*.?$`)

// gradeAnswer compares normalised answers part by part. Integers and reduced fractions have to match as they are.
func (c *comparer) gradeAnswer(given, gold string) bool {
	want, got := prmNormalize(gold), prmNormalize(given)
	if want == got {
		return true
	}
	if got == "" || want == "" {
		return false
	}
	wants, gots := splitTuple(want), splitTuple(got)
	if len(wants) != len(gots) || len(wants) > 1 && (want[0] != got[0] || want[len(want)-1] != got[len(got)-1]) {
		return false
	}
	for i := range wants {
		_, a := looseInteger(wants[i])
		_, b := looseInteger(gots[i])
		switch {
		case literalFraction.MatchString(wants[i]) && literalFraction.MatchString(gots[i]):
			if wants[i] != gots[i] {
				return false
			}
		case a != b, !c.sympyEqual(wants[i], gots[i]):
			return false
		}
	}
	return true
}

func splitTuple(s string) []string {
	s = stripCommas(s)
	const brackets = "()[]"
	if len(s) > 2 && strings.IndexByte(brackets, s[0]) >= 0 && strings.IndexByte(brackets, s[len(s)-1]) >= 0 && !strings.ContainsAny(s[1:len(s)-1], brackets) {
		parts := strings.Split(s[1:len(s)-1], ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	}
	return []string{s}
}

var refused = regexp.MustCompile(`\^[{(]|\^[0-9]+\^|\^[0-9][0-9]+`)

// sympyEqual compares expressions that PRM800K's grader would give to sympy.
func (c *comparer) sympyEqual(a, b string) bool {
	letters := map[rune]bool{}
	for _, r := range strings.NewReplacer("sqrt", "", "frac", "").Replace(a + b) {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			letters[r] = true
		}
	}
	const mostLetters = 2
	if len(letters) > mostLetters || refused.MatchString(a) || refused.MatchString(b) {
		return false
	}
	x, y := read(a).node, read(b).node
	return x != nil && y != nil && x.scalar() && y.scalar() && c.exactly(x, y).Outcome == Correct
}
