package tokenizer

import "fmt"

// configJSON is the tokenizer_config.json of a tokenizer trained here.
type configJSON struct {
	AddBOS  bool                    `json:"add_bos_token"`
	Prefix  bool                    `json:"add_prefix_space"`
	Added   map[string]decoderEntry `json:"added_tokens_decoder"`
	Extra   []string                `json:"additional_special_tokens"`
	BOS     *string                 `json:"bos_token"`
	CleanUp bool                    `json:"clean_up_tokenization_spaces"`
	EOS     *string                 `json:"eos_token"`
	Errors  string                  `json:"errors"`
	MaxLen  int                     `json:"model_max_length"`
	Pad     *string                 `json:"pad_token"`
	Class   string                  `json:"tokenizer_class"`
	Unk     *string                 `json:"unk_token"`
}

type decoderEntry struct {
	Content    string `json:"content"`
	LStrip     bool   `json:"lstrip"`
	Normalized bool   `json:"normalized"`
	RStrip     bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
	Special    bool   `json:"special"`
}

// defaultMaxLength is what Qwen3 writes; the context a model really has is in its config.json.
const defaultMaxLength = 131072

func (t *Tokenizer) newConfig() ([]byte, error) {
	c := configJSON{Added: map[string]decoderEntry{}, Extra: []string{}, Errors: "replace", MaxLen: defaultMaxLength, Class: "Qwen2Tokenizer"}
	for _, a := range t.added {
		c.Added[fmt.Sprint(a.ID)] = decoderEntry{Content: a.Content, Special: a.Special}
		if a.Special {
			c.Extra = append(c.Extra, a.Content)
		}
	}
	c.EOS, c.Pad = t.named(TurnEnd), t.named(EndOfText)
	return encodeIndented(c)
}

func (t *Tokenizer) named(content string) *string {
	if _, ok := t.addedID[content]; !ok {
		return nil
	}
	return &content
}
