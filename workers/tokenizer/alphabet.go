package tokenizer

import "fmt"

// alphabet is the printable stand-in that byte-level BPE files write for each byte: a printable Latin-1 byte stands for
// itself, the others are numbered from U+0100 in byte order (GPT-2, bytes_to_unicode).
var alphabet = func() (runes [256]rune) {
	next := rune(0x100)
	for b := range 256 {
		if printable(b) {
			runes[b] = rune(b)
			continue
		}
		runes[b] = next
		next++
	}
	return runes
}()

// byteOf inverts alphabet.
var byteOf = func() map[rune]byte {
	inverse := make(map[rune]byte, 256)
	for b, r := range alphabet {
		inverse[r] = byte(b)
	}
	return inverse
}()

func printable(b int) bool {
	return b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE && b <= 0xFF
}

// toAlphabet writes raw bytes in the file alphabet.
func toAlphabet(raw string) string {
	runes := make([]rune, len(raw))
	for i := range len(raw) {
		runes[i] = alphabet[raw[i]]
	}
	return string(runes)
}

// fromAlphabet reads raw bytes out of the file alphabet.
func fromAlphabet(token string) (string, error) {
	raw := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := byteOf[r]
		if !ok {
			return "", fmt.Errorf("token %q holds %q, which is not in the byte-level alphabet", token, r)
		}
		raw = append(raw, b)
	}
	return string(raw), nil
}
