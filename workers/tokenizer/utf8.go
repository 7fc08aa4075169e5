package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// replacement stands for bytes that are not UTF-8.
const replacement = string(utf8.RuneError)

// validUTF8 replaces every maximal part of an ill-formed sequence by one U+FFFD, as Unicode §3.9 recommends and Python
// (errors="replace") and Rust (from_utf8_lossy) do: "\xe4\xb8x" is one U+FFFD and x, "\xff\xff" two U+FFFD.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		n, ok := nextUTF8(text)
		if ok {
			b.WriteString(text[:n])
		} else {
			b.WriteString(replacement)
		}
		text = text[n:]
	}
	return b.String()
}

// nextUTF8 returns the length of the character that text begins with, or of the maximal ill-formed part and false. text must
// not be empty.
func nextUTF8(text string) (n int, ok bool) {
	if r, width := utf8.DecodeRuneInString(text); r != utf8.RuneError || width > 1 {
		return width, true
	}
	need, low, high := wellFormed(text[0])
	for n = 1; n < need && n < len(text) && text[n] >= low && text[n] <= high; n++ {
		low, high = 0x80, 0xBF
	}
	return n, false
}

// unfinishedUTF8 tells whether all of text could be the beginning of one character.
func unfinishedUTF8(text string) bool {
	if len(text) == 0 {
		return false
	}
	n, ok := nextUTF8(text)
	need, _, _ := wellFormed(text[0])
	return !ok && n == len(text) && n < need
}

// wellFormed returns the length of a character with this first byte and the bounds of its second byte (Unicode, table 3-7).
func wellFormed(first byte) (length int, low, high byte) {
	switch {
	case first >= 0xC2 && first <= 0xDF:
		return 2, 0x80, 0xBF
	case first == 0xE0:
		return 3, 0xA0, 0xBF
	case first == 0xED:
		return 3, 0x80, 0x9F
	case first >= 0xE1 && first <= 0xEF:
		return 3, 0x80, 0xBF
	case first == 0xF0:
		return 4, 0x90, 0xBF
	case first >= 0xF1 && first <= 0xF3:
		return 4, 0x80, 0xBF
	case first == 0xF4:
		return 4, 0x80, 0x8F
	}
	return 1, 0x80, 0xBF
}
