// Package tokenizer turns text into token ids and back: byte-level BPE as Hugging Face tokenizer.json describes it for
// Qwen2 and Qwen3, and the rStar2 conversation in ids.
//
// Invariants:
//   - Encode never yields the id of an added token, whatever the text says: only EncodeWithSpecials does, and that is for
//     text this program wrote itself. Foreign text (questions, tool output) cannot write a turn marker.
//   - Decode(Encode(text)) is NFC(text), byte for byte, invalid UTF-8 included; without an NFC normaliser it is text.
//   - A Tokenizer does not change after it is made and may be used by many goroutines.
//   - The same training texts give the same tokenizer, byte for byte.
package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/text/unicode/norm"
)

// AddedToken is a token that stands outside the BPE vocabulary and is matched as a whole. Special ones are control
// tokens, which a reader of the text normally does not want to see.
type AddedToken struct {
	ID      int32
	Content string
	Special bool
}

// Tokenizer is a byte-level BPE vocabulary with its pre-tokenizer and added tokens.
type Tokenizer struct {
	tokens       []string         // id -> token in the file alphabet; "" for ids that only an added token has
	raw          []string         // id -> bytes that the id decodes to
	ids          map[string]int32 // raw bytes -> id, BPE vocabulary only
	byteIDs      [256]int32
	merges       map[pair]merge
	mergeList    []pair       // by rank
	added        []AddedToken // by id
	addedID      map[string]int32
	addedByByte  map[byte][]AddedToken // first byte -> added tokens, longest first
	pattern      string
	split        splitter
	nfc          bool
	ignoreMerges bool
	config       []byte // tokenizer_config.json as read, nil if made here

	cache      sync.Map // piece -> []int32
	cacheCount atomic.Int64
}

// Bounds of the cache of encoded pieces: natural text repeats short pieces, and foreign text must not fill the memory.
const (
	maxCachedPieces = 1 << 16
	maxCachedBytes  = 32
)

// vocabulary is everything a tokenizer is made of.
type vocabulary struct {
	tokens       []string // file alphabet, index = id
	merges       []pair
	added        []AddedToken
	pattern      string
	nfc          bool
	ignoreMerges bool
}

func newTokenizer(v vocabulary) (*Tokenizer, error) {
	split, err := newSplitter(v.pattern)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{
		pattern: v.pattern, split: split, nfc: v.nfc, ignoreMerges: v.ignoreMerges,
		addedID: map[string]int32{}, addedByByte: map[byte][]AddedToken{},
	}
	if err := t.setVocabulary(v.tokens); err != nil {
		return nil, err
	}
	if err := t.setMerges(v.merges); err != nil {
		return nil, err
	}
	return t, t.setAdded(v.added)
}

func (t *Tokenizer) setVocabulary(tokens []string) error {
	t.tokens = slices.Clone(tokens)
	t.raw = make([]string, len(tokens))
	t.ids = make(map[string]int32, len(tokens))
	for id, token := range tokens {
		if token == "" {
			continue
		}
		raw, err := fromAlphabet(token)
		if err != nil {
			return fmt.Errorf("id %d: %w", id, err)
		}
		t.raw[id] = raw
		t.ids[raw] = int32(id)
	}
	for b := range 256 {
		id, ok := t.ids[string([]byte{byte(b)})]
		if !ok {
			return fmt.Errorf("vocabulary has no token for byte 0x%02x; byte-level BPE needs all 256", b)
		}
		t.byteIDs[b] = id
	}
	return nil
}

func (t *Tokenizer) setMerges(merges []pair) error {
	t.mergeList = slices.Clone(merges)
	t.merges = make(map[pair]merge, len(merges))
	for rank, p := range merges {
		joined := t.raw[p.left] + t.raw[p.right]
		id, ok := t.ids[joined]
		if !ok {
			return fmt.Errorf("merge %d makes %q, which is not in the vocabulary", rank, toAlphabet(joined))
		}
		if _, twice := t.merges[p]; !twice {
			t.merges[p] = merge{rank, id}
		}
	}
	return nil
}

func (t *Tokenizer) setAdded(added []AddedToken) error {
	t.added = slices.Clone(added)
	slices.SortFunc(t.added, func(a, b AddedToken) int { return int(a.ID) - int(b.ID) })
	for _, a := range t.added {
		if a.Content == "" || a.ID < 0 {
			return fmt.Errorf("added token %q has id %d, want a text and an id of at least 0", a.Content, a.ID)
		}
		if _, twice := t.addedID[a.Content]; twice {
			return fmt.Errorf("added token %q is listed twice", a.Content)
		}
		t.addedID[a.Content] = a.ID
		for int(a.ID) >= len(t.raw) {
			t.raw, t.tokens = append(t.raw, ""), append(t.tokens, "")
		}
		if int(a.ID) < len(t.tokens) && t.ids[t.raw[a.ID]] == a.ID {
			delete(t.ids, t.raw[a.ID]) // listed in the vocabulary too: out of reach of BPE from here on
		}
		t.raw[a.ID] = a.Content
		t.addedByByte[a.Content[0]] = append(t.addedByByte[a.Content[0]], a)
	}
	for _, list := range t.addedByByte {
		slices.SortStableFunc(list, func(a, b AddedToken) int { return len(b.Content) - len(a.Content) })
	}
	return nil
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

// Encode returns the ids of text with added tokens off: "<|im_end|>" in text becomes the ids of its letters and signs.
func (t *Tokenizer) Encode(text string) []int32 { return t.appendText(nil, text) }

// EncodeWithSpecials returns the ids of text with added tokens on, the longest one first where several begin at the same
// place. Never give it text from outside this program.
func (t *Tokenizer) EncodeWithSpecials(text string) []int32 {
	return t.appendSegments(nil, segment{text: text, trusted: true})
}

// segment is a stretch of a conversation. In trusted text added tokens are ids; in foreign text nothing is.
type segment struct {
	text    string
	trusted bool
}

// appendSegments encodes segments as one text: what lies between two added tokens is encoded as a whole, across segments.
func (t *Tokenizer) appendSegments(ids []int32, segments ...segment) []int32 {
	var run strings.Builder
	flush := func() {
		ids = t.appendText(ids, run.String())
		run.Reset()
	}
	for _, s := range segments {
		rest := s.text
		for s.trusted {
			at, found := t.findAdded(rest)
			if at < 0 {
				break
			}
			run.WriteString(rest[:at])
			flush()
			ids = append(ids, found.ID)
			rest = rest[at+len(found.Content):]
		}
		run.WriteString(rest)
	}
	flush()
	return ids
}

// findAdded returns the first added token in text and its place, or -1.
func (t *Tokenizer) findAdded(text string) (int, AddedToken) {
	for i := range len(text) {
		for _, a := range t.addedByByte[text[i]] {
			if strings.HasPrefix(text[i:], a.Content) {
				return i, a
			}
		}
	}
	return -1, AddedToken{}
}

func (t *Tokenizer) appendText(ids []int32, text string) []int32 {
	if t.nfc && !norm.NFC.IsNormalString(text) {
		text = norm.NFC.String(text)
	}
	t.split(text, func(piece string) { ids = append(ids, t.encodePiece(piece)...) })
	return ids
}

func (t *Tokenizer) encodePiece(piece string) []int32 {
	if cached, ok := t.cache.Load(piece); ok {
		return cached.([]int32)
	}
	ids := t.mergePiece(piece)
	if len(piece) <= maxCachedBytes && t.cacheCount.Load() < maxCachedPieces {
		t.cacheCount.Add(1)
		t.cache.Store(strings.Clone(piece), slices.Clip(ids))
	}
	return ids
}

func (t *Tokenizer) mergePiece(piece string) []int32 {
	if t.ignoreMerges {
		if id, ok := t.ids[piece]; ok {
			return []int32{id}
		}
	}
	ids := make([]int32, len(piece))
	for i := range len(piece) {
		ids[i] = t.byteIDs[piece[i]]
	}
	return mergeAll(ids, t.merges)
}

// Decode returns the bytes that ids stand for, added tokens in words. A cut in the middle of a character gives invalid
// UTF-8, which Encode takes back unchanged; Decoder holds such bytes until they are complete. An id without a token, such as
// one from a model's padded vocabulary, adds nothing.
func (t *Tokenizer) Decode(ids []int32) string {
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(t.bytesOf(id))
	}
	return text.String()
}

func (t *Tokenizer) bytesOf(id int32) string {
	if id < 0 || int(id) >= len(t.raw) {
		return ""
	}
	return t.raw[id]
}
