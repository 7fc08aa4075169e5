package tokenizer

import "strings"

// Encode returns the ids of text with added tokens off: "<|im_end|>" in text becomes the ids of its letters and signs. Bytes
// that are not UTF-8 are encoded as U+FFFD, one for each maximal ill-formed part, as a text read with Python's
// errors="replace" would be.
func (t *Tokenizer) Encode(text string) []int32 { return t.appendText(nil, text, t.foreign) }

// EncodeWithSpecials returns the ids of text with added tokens on, the longest one first where several begin at the same
// place: encode(text, add_special_tokens=False) of the reference library. Never give it text from outside this program.
func (t *Tokenizer) EncodeWithSpecials(text string) []int32 {
	var ids []int32
	t.early.cut(validUTF8(text),
		func(between string) {
			t.late.cut(t.normalise(between),
				func(rest string) { ids = t.appendPieces(ids, rest, t.own) },
				func(a AddedToken) { ids = append(ids, a.ID) })
		},
		func(a AddedToken) { ids = append(ids, a.ID) })
	return ids
}

// Frame puts around the ids of a text what the tokenizer's post-processor does, such as Llama's <|begin_of_text|>:
// Frame(EncodeWithSpecials(text)) is encode(text, add_special_tokens=True) of the reference library.
func (t *Tokenizer) Frame(ids []int32) []int32 {
	if len(t.frame.before)+len(t.frame.after) == 0 {
		return ids
	}
	framed := append([]int32(nil), t.frame.before...)
	framed = append(framed, ids...)
	return append(framed, t.frame.after...)
}

// segment is a stretch of a conversation, and which added tokens are ids in it.
type segment struct {
	text  string
	trust trust
}

type trust int

const (
	foreign  trust = iota // none: somebody else's text
	rendered              // those that are not special, such as <tool_call>: an assistant's words that somebody hands back
	own                   // all: this program's text
)

// markers returns what is looked for in a segment, nil for nothing.
func (t *Tokenizer) markers(of trust) *matcher {
	switch of {
	case own:
		return t.all
	case rendered:
		return t.plain
	}
	return nil
}

// appendSegments encodes segments as one text: what lies between two added tokens is encoded as a whole, across segments.
func (t *Tokenizer) appendSegments(ids []int32, segments ...segment) []int32 {
	var run strings.Builder
	for _, s := range segments {
		markers := t.markers(s.trust)
		if markers == nil {
			run.WriteString(s.text)
			continue
		}
		markers.cut(validUTF8(s.text),
			func(between string) { run.WriteString(between) },
			func(a AddedToken) {
				ids = append(t.appendText(ids, run.String(), t.foreign), a.ID)
				run.Reset()
			})
	}
	return t.appendText(ids, run.String(), t.foreign)
}

func (t *Tokenizer) appendText(ids []int32, text string, c *coder) []int32 {
	return t.appendPieces(ids, t.normalise(validUTF8(text)), c)
}

func (t *Tokenizer) normalise(text string) string {
	for _, step := range t.normalizers {
		text = step(text)
	}
	return text
}

func (t *Tokenizer) appendPieces(ids []int32, text string, c *coder) []int32 {
	t.pre.split(text, func(piece string) { ids = c.append(ids, piece) })
	return ids
}

// Decode returns the text that ids stand for, added tokens in words: decode(ids, skip_special_tokens=False) of the reference
// library. Bytes that are no character come out as U+FFFD; Decoder does the same id by id. An id without a token, such as one
// from a model's padded vocabulary, adds nothing.
func (t *Tokenizer) Decode(ids []int32) string {
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(t.Bytes(id))
	}
	return validUTF8(text.String())
}

// Bytes returns what one id adds to a text, which may be a part of a character.
func (t *Tokenizer) Bytes(id int32) string {
	if id < 0 || int(id) >= len(t.raw) {
		return ""
	}
	return t.raw[id]
}

// DecodeText is Decode without the special tokens: decode(ids) of the reference library.
func (t *Tokenizer) DecodeText(ids []int32) string {
	var text strings.Builder
	for _, id := range ids {
		if !t.Special(id) {
			text.WriteString(t.Bytes(id))
		}
	}
	return validUTF8(text.String())
}

// Special tells whether id is a special token, which a reader of the text does not want to see.
func (t *Tokenizer) Special(id int32) bool {
	return t.special[id]
}
