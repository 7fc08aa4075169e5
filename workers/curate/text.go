package curate

import (
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/restar-rl/restar/workers/verify"
)

var (
	// wordToken is a LaTeX command, a word or a number: what runs of words are counted in. Signs are left out, so that the
	// same sentence with other punctuation still overlaps.
	wordToken = regexp.MustCompile(`\\[a-z]+|\p{L}+|\p{N}+`)
	// textToken is any of these or a single sign: "3+5" and "3*5" are different texts.
	textToken = regexp.MustCompile(`\\[a-z]+|\p{L}+|\p{N}+|[^\s$]`)
	// layout are LaTeX commands and signs that change how a text looks and not what it says.
	layout = strings.NewReplacer(`\left`, "", `\right`, "", `\,`, " ", `\;`, " ", `\!`, "", `\quad`, " ", `\displaystyle`, "", `\dfrac`, `\frac`, `\tfrac`, `\frac`)
)

func fold(text string) string { return layout.Replace(strings.ToLower(norm.NFKC.String(text))) }

func wordTokens(text string) []string { return wordToken.FindAllString(fold(text), -1) }

func textTokens(text string) []string { return textToken.FindAllString(fold(text), -1) }

// sameText is equal for two texts that differ only in case, spacing, dollar signs, layout or the sign they end with.
func sameText(text string) string {
	return strings.TrimRight(strings.Join(textTokens(text), " "), " .?!:")
}

// hasPoint tells 6.0, which a verifier takes for 6, from an answer that was written as an integer.
func hasPoint(answer string) bool { return strings.Contains(answer, ".") }

// stated finds "answer is 6", "Answer: 6", "#### 6" and the like.
var stated = regexp.MustCompile(`(?i)(?:\banswers?\b\s*(?:is|are|=|:)?|####)\s*\$?\s*([+-]?[0-9][0-9,]*)`)

// leakOf returns the words in which a problem's text states its answer.
func leakOf(text, answer string) (string, bool) {
	if box, _, ok := verify.Extract(text); ok && verify.Judge(answer, box).Outcome == verify.Correct {
		return `\boxed{` + box + `}`, true
	}
	for _, m := range stated.FindAllStringSubmatch(text, -1) {
		if verify.Judge(answer, strings.TrimRight(m[1], ",")).Outcome == verify.Correct {
			return m[0], true
		}
	}
	return "", false
}
