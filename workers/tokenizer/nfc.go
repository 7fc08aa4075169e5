package tokenizer

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// toNFC is canonical composition as the reference library computes it. x/text gives the decompositions and the classes; the
// composition is written out here because norm.NFC breaks a row of more than 30 marks with U+034F (Stream-Safe Text), and
// composes runes of other planes as if they were those of the first with the same low 16 bits (U+10043 U+0327 becomes U+00C7).
// Marks in laterMarks have no class in the reference's older tables, and stay where they are.
func toNFC(text string) string {
	if norm.NFC.IsNormalString(text) {
		return text
	}
	runes := make([]rune, 0, len(text))
	for _, r := range text {
		runes = appendDecomposed(runes, r)
	}
	orderMarks(runes)
	return string(compose(runes))
}

// The syllables of Hangul are composed by arithmetic (Unicode §3.12).
const (
	hangulBase, leadBase, vowelBase, tailBase = 0xAC00, 0x1100, 0x1161, 0x11A7
	leads, vowels, tails                      = 19, 21, 28
	hangulCount                               = leads * vowels * tails
)

func appendDecomposed(runes []rune, r rune) []rune {
	if s := r - hangulBase; s >= 0 && s < hangulCount {
		runes = append(runes, leadBase+s/(vowels*tails), vowelBase+s%(vowels*tails)/tails)
		if t := s % tails; t > 0 {
			runes = append(runes, tailBase+t)
		}
		return runes
	}
	if r < 0xC0 { // nothing below decomposes
		return append(runes, r)
	}
	var buf [utf8.UTFMax]byte
	whole := norm.NFD.Properties(buf[:utf8.EncodeRune(buf[:], r)]).Decomposition()
	if whole == nil {
		return append(runes, r)
	}
	for _, d := range string(whole) {
		runes = append(runes, d)
	}
	return runes
}

func combiningClass(r rune) uint8 {
	if r < 0x300 || unicode.Is(laterMarks, r) {
		return 0
	}
	var buf [utf8.UTFMax]byte
	return norm.NFD.Properties(buf[:utf8.EncodeRune(buf[:], r)]).CCC()
}

// orderMarks sorts every row of marks by class, equal ones as they stand.
func orderMarks(runes []rune) {
	for i := 0; i < len(runes); {
		end := i
		for end < len(runes) && combiningClass(runes[end]) != 0 {
			end++
		}
		if end-i > 1 {
			slices.SortStableFunc(runes[i:end], func(a, b rune) int { return int(combiningClass(a)) - int(combiningClass(b)) })
		}
		i = end + 1
	}
}

// compose joins each starter with the marks after it that nothing of their own class or a higher one separates from it.
func compose(runes []rune) []rune {
	pairs := primaryComposites()
	out := runes[:0]
	starter, last := -1, -1 // place of the starter in out; class of the rune before, -1 right after the starter
	for _, r := range runes {
		class := int(combiningClass(r))
		if starter >= 0 && last < class {
			if joined, ok := composite(pairs, out[starter], r); ok {
				out[starter] = joined
				continue
			}
		}
		if class == 0 {
			starter, last = len(out), -1
		} else {
			last = class
		}
		out = append(out, r)
	}
	return out
}

func composite(pairs map[[2]rune]rune, a, b rune) (rune, bool) {
	if l, v := a-leadBase, b-vowelBase; l >= 0 && l < leads && v >= 0 && v < vowels {
		return hangulBase + (l*vowels+v)*tails, true
	}
	if s, t := a-hangulBase, b-tailBase; s >= 0 && s < hangulCount && s%tails == 0 && t > 0 && t < tails {
		return a + t, true
	}
	r, ok := pairs[[2]rune{a, b}]
	return r, ok
}

// primaryComposites maps the two runes of every canonical composite to it. U+11938 (Unicode 13) is unknown to the reference.
var primaryComposites = sync.OnceValue(func() map[[2]rune]rune {
	pairs := map[[2]rune]rune{}
	add := func(from, to rune) {
		for r := from; r < to; r++ {
			whole := []rune(string(norm.NFD.PropertiesString(string(r)).Decomposition()))
			if n := len(whole); n > 1 && r != 0x11938 && norm.NFC.IsNormalString(string(r)) {
				first := []rune(norm.NFC.String(string(whole[:n-1])))
				pairs[[2]rune{first[0], whole[n-1]}] = r
			}
		}
	}
	add(0xC0, 0x3100) // all composites of Unicode lie in these two stretches
	add(0x11000, 0x12000)
	return pairs
})
