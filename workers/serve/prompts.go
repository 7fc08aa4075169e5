package serve

import "encoding/json"

// prompts is a text, a list of texts, a list of ids or a list of lists of ids.
type prompts struct {
	texts []string
	ids   [][]int32
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *prompts) UnmarshalJSON(b []byte) error {
	var text string
	var list []int32
	switch {
	case string(b) == "null" || string(b) == "[]":
		return badRequest("prompt", "prompt is empty, want a text, token ids, or a list of either")
	case json.Unmarshal(b, &text) == nil:
		p.texts = []string{text}
	case json.Unmarshal(b, &p.texts) == nil:
	case json.Unmarshal(b, &list) == nil:
		p.texts, p.ids = nil, [][]int32{list}
	case json.Unmarshal(b, &p.ids) == nil:
		p.texts = nil
	default:
		return badRequest("prompt", "prompt is %.40s, want a text, token ids, or a list of either", b)
	}
	return nil
}

// encode returns the prompts in ids. A text is the client's own, markers included.
func (s *Server) encode(p prompts, frame bool) ([][]int32, error) {
	out := p.ids
	for _, text := range p.texts {
		ids := s.tokenizer.EncodeWithSpecials(text)
		if frame {
			ids = s.tokenizer.Frame(ids)
		}
		out = append(out, ids)
	}
	for i, ids := range out {
		if len(ids) == 0 {
			return nil, badRequest("prompt", "prompt %d is empty", i)
		}
	}
	if len(out) == 0 {
		return nil, badRequest("prompt", "prompt is missing, want a text, token ids, or a list of either")
	}
	return out, nil
}
