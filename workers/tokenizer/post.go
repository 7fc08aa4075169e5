package tokenizer

import (
	"errors"
	"fmt"
)

// frame is what a post-processor puts around the ids of a text.
type frame struct{ before, after []int32 }

// readPostProcessor accepts ByteLevel, which concerns offsets only, TemplateProcessing, and a Sequence of them.
func readPostProcessor(p *postJSON) (frame, error) {
	var f frame
	switch {
	case p == nil || p.Type == "ByteLevel":
		return f, nil
	case p.Type == "TemplateProcessing":
		return readTemplate(p)
	case p.Type == "Sequence":
		for _, part := range p.Processors {
			more, err := readPostProcessor(part)
			if err != nil {
				return f, err
			}
			f.before, f.after = append(more.before, f.before...), append(f.after, more.after...)
		}
		return f, nil
	}
	return f, fmt.Errorf("post_processor %q, want ByteLevel, TemplateProcessing or a Sequence of them", p.Type)
}

func readTemplate(p *postJSON) (frame, error) {
	var f frame
	seen := false
	for _, piece := range p.Single {
		switch {
		case piece.Sequence != nil && !seen && piece.Sequence.ID == "A":
			seen = true
		case piece.SpecialToken != nil:
			token, ok := p.SpecialTokens[piece.SpecialToken.ID]
			if !ok {
				return f, fmt.Errorf("post_processor TemplateProcessing names %q, which its special_tokens lack", piece.SpecialToken.ID)
			}
			if seen {
				f.after = append(f.after, token.IDs...)
			} else {
				f.before = append(f.before, token.IDs...)
			}
		default:
			return f, errors.New("post_processor TemplateProcessing: single holds a piece that is neither a special token nor the one sequence A")
		}
	}
	if !seen {
		return f, errors.New("post_processor TemplateProcessing: single lacks the sequence A")
	}
	return f, nil
}
