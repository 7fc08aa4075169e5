package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// tokenizerJSON is tokenizer.json as far as a byte-level BPE uses it.
type tokenizerJSON struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedJSON     `json:"added_tokens"`
	Normalizer    *stageJSON      `json:"normalizer"`
	PreTokenizer  *stageJSON      `json:"pre_tokenizer"`
	PostProcessor *postJSON       `json:"post_processor"`
	Decoder       *stageJSON      `json:"decoder"`
	Model         modelJSON       `json:"model"`
}

type addedJSON struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// stageJSON is a normaliser, pre-tokenizer or decoder of any kind that is understood here.
type stageJSON struct {
	Type             string       `json:"type"`
	Normalizers      []*stageJSON `json:"normalizers,omitempty"`
	Pretokenizers    []*stageJSON `json:"pretokenizers,omitempty"`
	Pattern          *patternJSON `json:"pattern,omitempty"`
	Behavior         string       `json:"behavior,omitempty"`
	Invert           *bool        `json:"invert,omitempty"`
	IndividualDigits bool         `json:"individual_digits,omitempty"`
	AddPrefixSpace   *bool        `json:"add_prefix_space,omitempty"`
	TrimOffsets      *bool        `json:"trim_offsets,omitempty"`
	UseRegex         *bool        `json:"use_regex,omitempty"`
}

// postJSON is a post-processor of any kind that is understood here.
type postJSON struct {
	Type          string               `json:"type"`
	Processors    []*postJSON          `json:"processors,omitempty"`
	Single        []pieceJSON          `json:"single,omitempty"`
	SpecialTokens map[string]tokenJSON `json:"special_tokens,omitempty"`

	AddPrefixSpace *bool `json:"add_prefix_space,omitempty"`
	TrimOffsets    *bool `json:"trim_offsets,omitempty"`
	UseRegex       *bool `json:"use_regex,omitempty"`
}

type pieceJSON struct {
	SpecialToken *nameJSON `json:"SpecialToken,omitempty"`
	Sequence     *nameJSON `json:"Sequence,omitempty"`
}

type nameJSON struct {
	ID string `json:"id"`
}

type tokenJSON struct {
	IDs []int32 `json:"ids"`
}

type patternJSON struct {
	Regex  string `json:"Regex,omitempty"`
	String string `json:"String,omitempty"`
}

type modelJSON struct {
	Type         string          `json:"type"`
	Dropout      *float64        `json:"dropout"`
	UnkToken     *string         `json:"unk_token"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       *string         `json:"end_of_word_suffix"`
	FuseUnk      bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       []mergeJSON     `json:"merges"`
}

// mergeJSON is a merge, written as "left right" or ["left","right"].
type mergeJSON [2]string

func (m *mergeJSON) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var both []string
		if err := json.Unmarshal(b, &both); err != nil || len(both) != 2 {
			return fmt.Errorf("merge %s, want two tokens", b)
		}
		*m = mergeJSON{both[0], both[1]}
		return nil
	}
	var line string
	if err := json.Unmarshal(b, &line); err != nil {
		return err
	}
	left, right, ok := strings.Cut(line, " ")
	if !ok {
		return fmt.Errorf("merge %q, want two tokens with a space between", line)
	}
	*m = mergeJSON{left, right}
	return nil
}

func (m mergeJSON) MarshalJSON() ([]byte, error) { return encodeJSON(m[0] + " " + m[1]) }

// encodeJSON encodes without HTML escaping and without the encoder's closing line break.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func encodeIndented(v any) ([]byte, error) {
	compact, err := encodeJSON(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
