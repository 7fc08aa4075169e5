package verify

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// lookalikes are signs with a plain LaTeX or ASCII spelling. They are replaced before compatibility normalisation, which would
// turn a superscript into a digit.
var lookalikes = strings.NewReplacer(
	"\u2212", "-", "\u2013", "-", "\u2014", "-", "\u2010", "-", "\u2011", "-", "\ufe63", "-",
	"×", `\times `, "·", `\cdot `, "⋅", `\cdot `, "∙", `\cdot `, "÷", "/", "⁄", "/", "∕", "/",
	"π", `\pi `, "∞", `\infty `, "√", `\sqrt `, "±", `\pm `, "∓", `\mp `, "°", "°", "º", "°", "∠", `\angle `,
	"≤", `\le `, "≥", `\ge `, "⩽", `\le `, "⩾", `\ge `, "≠", `\ne `, "≈", `\approx `, "∈", `\in `,
	"∪", `\cup `, "∩", `\cap `, "∖", `\setminus `, "∅", `\emptyset `, "ℝ", `\mathbb{R}`, "ℤ", `\mathbb{Z}`,
	"⁰", "^0", "¹", "^1", "²", "^2", "³", "^3", "⁴", "^4", "⁵", "^5", "⁶", "^6", "⁷", "^7", "⁸", "^8", "⁹", "^9",
	"₀", "_0", "₁", "_1", "₂", "_2", "₃", "_3", "₄", "_4", "₅", "_5", "₆", "_6", "₇", "_7", "₈", "_8", "₉", "_9",
	"½", ` \frac12 `, "⅓", ` \frac13 `, "⅔", ` \frac23 `, "¼", ` \frac14 `, "¾", ` \frac34 `,
	"′", "'", "’", "'", "‘", "'", "“", `"`, "”", `"`, "，", ",", "、", ",", "。", ". ", "；", ";", "：", ":",
	"θ", `\theta `, "α", `\alpha `, "β", `\beta `, "γ", `\gamma `, "λ", `\lambda `, "μ", `\mu `, "φ", `\phi `, "ω", `\omega `,
	"€", `\$`, "£", `\$`, "¥", `\$`, "₹", `\$`, "\u200b", "", "\u200c", "", "\u200d", "", "\ufeff", "", "\u2060", "",
	"\u00a0", " ", "\u2009", " ", "\u202f", " ", "\u2002", " ", "\u2003", " ",
)

var (
	// layout changes how a formula looks and not what it says.
	layout     = regexp.MustCompile(`\\(?:left|right)\s*\.|\\(?:left|right|displaystyle|textstyle|limits|nolimits|[bB]igg?[lrm]?)\b`)
	wideSpace  = regexp.MustCompile(`\\q?quad|\\hspace\{[^{}]*\}|\\[;: ]|~`)
	fractions  = regexp.MustCompile(`\\[dtc]frac`)
	doubled    = regexp.MustCompile(`\\\\([A-Za-z(){}\[\]%$,;!])`)
	degree     = regexp.MustCompile(`\^\s*(?:\{\s*\\circ\s*\}|\\circ\b|°)|\\degree\b`)
	braceComma = regexp.MustCompile(`\s*\{\s*,\s*\}\s*|\s*,\s*\\!\s*`)
	thinDigits = regexp.MustCompile(`(\d)\\[, ]\s*(\d{3})`)
	invisible  = regexp.MustCompile(`\\(?:phantom|label|tag)\{[^{}]*\}`)
)

// prepare rewrites text into the one spelling that the parser reads. Its work is linear in the text.
func prepare(text string) string {
	s := norm.NFKC.String(lookalikes.Replace(text))
	if strings.Contains(s, `\begin`) {
		s = strings.ReplaceAll(s, `\\`, `\cr `) // the end of a row
	} else {
		s = doubled.ReplaceAllString(s, `\$1`) // a backslash that was escaped once too often
	}
	s = invisible.ReplaceAllString(s, "")
	s = braceComma.ReplaceAllString(s, "{,}")
	for range 2 { // neighbouring groups share a digit, so one pass may leave every second one
		s = thinDigits.ReplaceAllString(s, "$1{,}$2")
	}
	s = strings.ReplaceAll(s, `\!`, "")
	s = strings.ReplaceAll(s, `\,`, " ")
	s = wideSpace.ReplaceAllString(s, " ")
	s = layout.ReplaceAllString(s, " ")
	s = fractions.ReplaceAllString(s, `\frac`)
	return degree.ReplaceAllString(s, "°")
}
