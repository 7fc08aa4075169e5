package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Decoder decodes ids one at a time into text that is always valid UTF-8: bytes of an unfinished character wait for the
// rest, and bytes that can no longer become a character come out as U+FFFD.
type Decoder struct {
	t       *Tokenizer
	pending []byte
}

// NewDecoder starts a stream.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t} }

// Write returns the text that id completes; it may be empty.
func (d *Decoder) Write(id int32) string {
	d.pending = append(d.pending, d.t.bytesOf(id)...)
	var text strings.Builder
	for len(d.pending) > 0 && utf8.FullRune(d.pending) {
		r, width := utf8.DecodeRune(d.pending)
		text.WriteRune(r)
		d.pending = d.pending[width:]
	}
	return text.String()
}

// Close returns what an unfinished character leaves behind: one U+FFFD a byte, or nothing.
func (d *Decoder) Close() string {
	left := strings.Repeat(string(utf8.RuneError), len(d.pending))
	d.pending = nil
	return left
}
