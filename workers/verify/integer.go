package verify

import (
	"math/big"
	"regexp"
	"strings"
)

var (
	plainInteger = regexp.MustCompile(`^[+-]?[0-9]+(\.0*)?$`)
	// grouped is an integer in groups of three: 1,234,567 or 1{,}234 or 1\,234 or 1 234.
	grouped   = regexp.MustCompile(`^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.0*)?$`)
	separator = regexp.MustCompile(`\\!,?\\?!?|\{,\}|\\[,;: ]|[,\x{2009}\x{202f}\x{a0} ]`)
)

// wrappers surround a whole answer without changing it.
var wrappers = [][2]string{{"$$", "$$"}, {"$", "$"}, {`\(`, `\)`}, {`\[`, `\]`}, {"{", "}"}}

// Integer reads text as an integer of any size: signs, leading zeros, groups of three digits, a decimal part of zeros and
// surrounding dollar signs are understood, anything else (units, several values, expressions) is not an integer.
func Integer(text string) (*big.Int, bool) {
	if len(text) > MaxAnswer {
		return nil, false
	}
	s := unwrap(strings.ReplaceAll(text, "\u2212", "-")) // the typographic minus sign
	if !plainInteger.MatchString(s) {
		s = separator.ReplaceAllString(s, ",")
		if !grouped.MatchString(s) {
			return nil, false
		}
		s = strings.ReplaceAll(s, ",", "")
	}
	whole, _, _ := strings.Cut(s, ".")
	return new(big.Int).SetString(strings.TrimPrefix(whole, "+"), 10)
}

func unwrap(s string) string {
	for {
		before := s
		s = strings.TrimSpace(s)
		for _, w := range wrappers {
			if len(s) > len(w[0])+len(w[1]) && strings.HasPrefix(s, w[0]) && strings.HasSuffix(s, w[1]) {
				s = s[len(w[0]) : len(s)-len(w[1])]
			}
		}
		if s == before {
			return s
		}
	}
}
