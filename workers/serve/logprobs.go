package serve

import (
	"fmt"
	"unicode/utf8"

	"github.com/restar-rl/restar/workers/tokenizer"
)

type completionLogProbs struct {
	Tokens   []string             `json:"tokens"`
	LogProbs []float32            `json:"token_logprobs"`
	Top      []map[string]float32 `json:"top_logprobs"`
	Offsets  []int                `json:"text_offset"` // in characters of the answer
}

// offset is how many characters of an answer its tokens so far have written; those that tokens share are the last one's.
type offset struct {
	decoder    *tokenizer.Decoder
	characters int
}

func (o *offset) add(id int32) { o.characters += utf8.RuneCountInString(o.decoder.Write(id)) }

func (c *completion) logProbs(i int) *completionLogProbs {
	out := &completionLogProbs{}
	for _, t := range c.tokens[i] {
		text := c.s.tokenText(t.ID)
		out.Tokens = append(out.Tokens, text)
		out.LogProbs = append(out.LogProbs, t.LogProb)
		out.Offsets = append(out.Offsets, c.offsets[i].characters)
		if c.s.tokenizer.DecodeText([]int32{t.ID}) != "" { // the text lacks special tokens
			c.offsets[i].add(t.ID)
		}
		top := map[string]float32{text: t.LogProb}
		for _, l := range t.TopLogProbs {
			top[c.s.tokenText(l.ID)] = l.LogP
		}
		out.Top = append(out.Top, top)
	}
	return out
}

// tokenText is how a token is named where its name is all there is: its text; its bytes where they are no text by themselves,
// as OpenAI writes them; its id where it has none.
func (s *Server) tokenText(id int32) string {
	raw := s.tokenizer.Bytes(id)
	switch {
	case raw == "":
		return fmt.Sprintf("token_id:%d", id)
	case utf8.ValidString(raw):
		return raw
	}
	name := "bytes:"
	for i := range len(raw) {
		name += fmt.Sprintf(`\x%02x`, raw[i])
	}
	return name
}
