package tokenizer

// Decoder decodes ids one at a time into text that is always valid UTF-8: bytes of an unfinished character wait for the
// rest, and bytes that can no longer become a character come out as U+FFFD. What it writes in all is what Decode returns.
type Decoder struct {
	t       *Tokenizer
	pending string
}

// NewDecoder starts a stream.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t} }

// Write returns the text that id completes; it may be empty.
func (d *Decoder) Write(id int32) string {
	text := d.pending + d.t.Bytes(id)
	done := 0
	for done < len(text) && !unfinishedUTF8(text[done:]) {
		n, _ := nextUTF8(text[done:])
		done += n
	}
	d.pending = text[done:]
	return validUTF8(text[:done])
}

// Close returns what an unfinished character leaves behind: one U+FFFD, or nothing.
func (d *Decoder) Close() string {
	left := validUTF8(d.pending)
	d.pending = ""
	return left
}
