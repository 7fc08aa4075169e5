package tokenizer

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// contractions is the one case-insensitive group that expressions of language models hold, and what it stands for: case
// folding takes U+017F for s, which regexp2 does not know.
const (
	contractions        = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	writtenContractions = "(?:'[sS\u017F]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
)

// laterRunes are the runes that Unicode 16, which the reference knows, has put into a category since Go's tables.
var laterRunes = map[string]*unicode.RangeTable{
	"L": laterL, "N": laterN, "P": laterP, "S": laterS, "M": laterM,
	"Lu": laterLu, "Ll": laterLl, "Lt": laterLt, "Lm": laterLm, "Lo": laterLo,
}

// token matches what may follow in an expression whose meaning is the same in Oniguruma and regexp2.
var (
	outsideToken = regexp.MustCompile(`^(?:\\p\{[A-Z][a-z]?\}|\\[sSrnt]|\\[^\pL\pN\s]|\(\?:|\(\?!|\(\?=|\(|\)|\||[?*+]\??|\{\d+(?:,\d*)?\}\??|\[\^?|[^\\()\[\]{}|?*+.^$])`)
	insideToken  = regexp.MustCompile(`^(?:\\p\{[A-Z][a-z]?\}|\\[sSrnt]|\\[^\pL\pN\s]|\]|[^\\\[\]&])`)
)

// portable rewrites an Oniguruma expression for regexp2, or says which part of it could mean something else there.
func portable(pattern string) (string, error) {
	var out strings.Builder
	inside, quantified := false, false
	for rest := pattern; rest != ""; {
		if !inside && strings.HasPrefix(rest, contractions) {
			out.WriteString(writtenContractions)
			rest, quantified = rest[len(contractions):], false
			continue
		}
		tokens := outsideToken
		if inside {
			tokens = insideToken
		}
		token := tokens.FindString(rest)
		if token == "" && inside && rest[0] == '&' && !strings.HasPrefix(rest, "&&") {
			token = "&"
		}
		if token == "(" && strings.HasPrefix(rest, "(?") { // a kind of group that is not listed
			token = ""
		}
		quantifier := !inside && token != "" && strings.ContainsAny(token[:1], "?*+{")
		if token == "" || quantifier && quantified { // a possessive or doubled quantifier
			return "", fmt.Errorf("%q is not among what restar reads as the reference does; only literals, classes, groups, alternatives, look-ahead and quantifiers are", clip(rest))
		}
		written, err := category(token, inside)
		if err != nil {
			return "", err
		}
		out.WriteString(written)
		quantified = quantifier
		switch {
		case !inside && token[0] == '[':
			inside = true
		case inside && token == "]":
			inside = false
		}
		rest = rest[len(token):]
	}
	return out.String(), nil
}

// category adds later runes to a \p{} token; other tokens stay as they are.
func category(token string, inside bool) (string, error) {
	name, ok := strings.CutPrefix(token, `\p{`)
	if !ok {
		return token, nil
	}
	name = strings.TrimSuffix(name, "}")
	later, known := laterRunes[name]
	switch {
	case !known:
		return "", fmt.Errorf("category %s is not among those that restar reads as the reference does: L, Lu, Ll, Lt, Lm, Lo, M, N, P, S", token)
	case inside:
		return token + ranges(later), nil
	}
	return "[" + token + ranges(later) + "]", nil
}

// ranges writes a table as the inside of a class.
func ranges(t *unicode.RangeTable) string {
	var b strings.Builder
	for _, r := range t.R16 {
		fmt.Fprintf(&b, "%c-%c", rune(r.Lo), rune(r.Hi))
	}
	for _, r := range t.R32 {
		fmt.Fprintf(&b, "%c-%c", rune(r.Lo), rune(r.Hi))
	}
	return b.String()
}

// clip is the beginning of a text, for messages.
func clip(s string) string {
	const most = 16
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}
