// Package tokenizer turns text into token ids and back: byte-level BPE as Hugging Face tokenizer.json describes it for
// Qwen2, Qwen3, Llama 3, GPT-2 and their like, and the rStar2 conversation in ids.
//
// Invariants:
//   - Ids are those of the reference library (Hugging Face tokenizers), or the file is refused by the name of what would
//     change them.
//   - Encode never yields the id of an added token, whatever the text says: only EncodeWithSpecials does, and that is for
//     text this program wrote itself. Foreign text (questions, tool output) cannot write a turn marker.
//   - Decode(Encode(text)) is the normalised text; bytes that are not UTF-8 are U+FFFD in it.
//   - A Tokenizer does not change after it is made and may be used by many goroutines.
//   - The same training texts give the same tokenizer, byte for byte.
package tokenizer

import (
	"fmt"
	"slices"
)

// Tokenizer is a byte-level BPE vocabulary with its pre-tokenizer and added tokens.
type Tokenizer struct {
	tokens      []string // id -> token in the file alphabet; "" for ids that only an added token has
	raw         []string // id -> bytes that the id decodes to
	merges      []pair   // by rank
	added       []AddedToken
	addedID     map[string]int32
	special     map[int32]bool
	normalizers []func(string) string
	pre         preTokenizer
	frame       frame

	own     *coder   // for text between added tokens
	foreign *coder   // the same without any way to an added token's id
	early   *matcher // added tokens that are looked for in the text as it stands
	late    *matcher // those that are looked for in normalised text
	all     *matcher
	plain   *matcher // added tokens that are not special

	file   []byte // tokenizer.json as read, nil if made here
	config []byte // tokenizer_config.json as read, nil if made here
}

// vocabulary is everything a tokenizer is made of.
type vocabulary struct {
	tokens       []string // file alphabet, index = id
	merges       []pair
	added        []AddedToken
	normalizers  []func(string) string
	pre          preTokenizer
	frame        frame
	ignoreMerges bool
}

func newTokenizer(v vocabulary) (*Tokenizer, error) {
	added, err := checkAdded(v.added)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		tokens: slices.Clone(v.tokens), merges: slices.Clone(v.merges), added: added, addedID: map[string]int32{}, special: map[int32]bool{},
		normalizers: v.normalizers, pre: v.pre, frame: v.frame,
	}
	ids, err := t.setRaw()
	if err != nil {
		return nil, err
	}
	if err := t.setCoders(ids, v.ignoreMerges); err != nil {
		return nil, err
	}
	if err := t.setAdded(ids); err != nil {
		return nil, err
	}
	for _, id := range append(slices.Clone(v.frame.before), v.frame.after...) {
		if id < 0 || int(id) >= len(t.raw) {
			return nil, fmt.Errorf("post_processor adds id %d, want one from 0 to %d", id, len(t.raw)-1)
		}
	}
	return t, nil
}

// setRaw reads the bytes of every token and returns their ids.
func (t *Tokenizer) setRaw() (map[string]int32, error) {
	outside := map[string]bool{} // an added token may be in the vocabulary too, with letters that the alphabet lacks
	for _, a := range t.added {
		outside[a.Content] = true
	}
	ids := make(map[string]int32, len(t.tokens))
	t.raw = make([]string, len(t.tokens))
	for id, token := range t.tokens {
		if token == "" {
			continue
		}
		raw, err := fromAlphabet(token)
		if err != nil && !outside[token] {
			return nil, fmt.Errorf("id %d: %w", id, err)
		}
		if err != nil {
			continue
		}
		t.raw[id] = raw
		ids[raw] = int32(id)
	}
	return ids, nil
}

// setCoders makes the two ways from pieces to ids. ids holds the vocabulary by bytes.
func (t *Tokenizer) setCoders(ids map[string]int32, ignoreMerges bool) error {
	t.own = &coder{merges: make(map[pair]merge, len(t.merges)), cache: newPieceCache()}
	for b := range 256 {
		id, ok := ids[string([]byte{byte(b)})]
		if !ok {
			return fmt.Errorf("vocabulary has no token for byte 0x%02x; byte-level BPE needs all 256", b)
		}
		t.own.byteIDs[b] = id
	}
	for rank, p := range t.merges {
		id, ok := ids[t.raw[p.left]+t.raw[p.right]]
		if !ok {
			return fmt.Errorf("merge %d makes %q, which is not in the vocabulary", rank, t.tokens[p.left]+t.tokens[p.right])
		}
		t.own.merges[p] = merge{int32(rank), id} // listed twice, the later rank counts
	}
	if ignoreMerges {
		t.own.whole = ids
	}
	t.foreign = t.withoutAdded()
	return nil
}

// withoutAdded returns the coder with every way to an added token's id closed.
func (t *Tokenizer) withoutAdded() *coder {
	barred := map[int32]bool{}
	for _, a := range t.added {
		barred[a.ID] = true
	}
	closed := &coder{byteIDs: t.own.byteIDs, merges: map[pair]merge{}, cache: newPieceCache()}
	for p, m := range t.own.merges {
		if !barred[m.id] {
			closed.merges[p] = m
		}
	}
	if t.own.whole != nil {
		closed.whole = map[string]int32{}
		for text, id := range t.own.whole {
			if !barred[id] {
				closed.whole[text] = id
			}
		}
	}
	if len(closed.merges) == len(t.own.merges) && len(closed.whole) == len(t.own.whole) {
		return t.own
	}
	return closed
}

func (t *Tokenizer) setAdded(ids map[string]int32) error {
	for _, a := range t.added {
		for int(a.ID) >= len(t.raw) {
			t.raw, t.tokens = append(t.raw, ""), append(t.tokens, "")
		}
		if known := t.tokens[a.ID]; known != "" && known != a.Content {
			return fmt.Errorf("added token %q has id %d, which is %q in the vocabulary", a.Content, a.ID, known)
		}
		raw := t.words(a)
		if id, ok := ids[raw]; ok && id != a.ID && t.tokens[id] == a.Content {
			return fmt.Errorf("added token %q has id %d, the vocabulary gives it id %d", a.Content, a.ID, id)
		}
		if len(raw) == 1 && t.own.byteIDs[raw[0]] == a.ID {
			return fmt.Errorf("added token %q is the token of byte 0x%02x; without it not every text could be encoded", a.Content, raw[0])
		}
		t.raw[a.ID] = raw
		t.addedID[a.Content], t.special[a.ID] = a.ID, a.Special
	}
	as := func(a AddedToken) string { return a.Content }
	late := func(a AddedToken) bool { return a.Normalized }
	t.all = newMatcher(t.added, as)
	t.plain = newMatcher(slices.DeleteFunc(slices.Clone(t.added), func(a AddedToken) bool { return a.Special }), as)
	t.early = newMatcher(slices.DeleteFunc(slices.Clone(t.added), late), as)
	t.late = newMatcher(slices.DeleteFunc(slices.Clone(t.added), func(a AddedToken) bool { return !late(a) }),
		func(a AddedToken) string { return t.normalise(a.Content) })
	return nil
}

// words returns what an added token decodes to, as the reference does it: a normalised token in its normalised form, and one
// whose letters are all of the file alphabet as the bytes they stand for there.
func (t *Tokenizer) words(a AddedToken) string {
	content := a.Content
	if a.Normalized {
		content = t.normalise(content)
	}
	if raw, err := fromAlphabet(content); err == nil {
		return raw
	}
	return content
}

// VocabSize returns one more than the highest id.
func (t *Tokenizer) VocabSize() int { return len(t.raw) }

// Added returns the added tokens by id.
func (t *Tokenizer) Added() []AddedToken { return slices.Clone(t.added) }

// SpecialID returns the id of an added token, special or not.
func (t *Tokenizer) SpecialID(content string) (int32, bool) {
	id, ok := t.addedID[content]
	return id, ok
}
