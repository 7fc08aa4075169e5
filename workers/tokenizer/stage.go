package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// preTokenizer is a row of stages. Each cuts the pieces of the one before; the last is ByteLevel, which turns bytes into the
// file alphabet and is left out here, since pieces stay raw bytes.
type preTokenizer struct {
	stages      []splitter
	prefixSpace bool // ByteLevel puts a space before every piece that has none
}

func (p preTokenizer) split(text string, yield func(piece string)) {
	if text == "" {
		return
	}
	if p.prefixSpace {
		yield = withPrefixSpace(yield)
	}
	splitBy(p.stages, text, yield)
}

func splitBy(stages []splitter, text string, yield func(string)) {
	switch len(stages) {
	case 0:
		yield(text)
	case 1:
		stages[0](text, yield)
	default:
		stages[0](text, func(piece string) { splitBy(stages[1:], piece, yield) })
	}
}

// readPreTokenizer accepts Split and Digits stages and a closing ByteLevel, with or without its own expression.
func readPreTokenizer(s *stageJSON) (preTokenizer, error) {
	var p preTokenizer
	if s == nil {
		return p, errors.New("pre_tokenizer is missing, want ByteLevel")
	}
	list := []*stageJSON{s}
	if s.Type == "Sequence" {
		list = s.Pretokenizers
	}
	for i, stage := range list {
		if stage == nil {
			return p, fmt.Errorf("pre_tokenizer stage %d is null", i)
		}
		last := i == len(list)-1
		if last != (stage.Type == "ByteLevel") {
			return p, fmt.Errorf("pre_tokenizer stage %d is %q, want Split or Digits stages and ByteLevel as the last one", i, stage.Type)
		}
		split, err := readStage(stage)
		if err != nil {
			return p, err
		}
		if last {
			p.prefixSpace = isTrue(stage.AddPrefixSpace)
			if p.prefixSpace && split != nil {
				p.stages, split = append(p.stages, prefixedSplit(split)), nil
				p.prefixSpace = false
			}
		}
		if split != nil {
			p.stages = append(p.stages, split)
		}
	}
	if len(list) == 0 {
		return p, errors.New("pre_tokenizer is an empty Sequence, want ByteLevel")
	}
	return p, nil
}

// readStage returns nil for a ByteLevel without an expression of its own.
func readStage(s *stageJSON) (splitter, error) {
	switch s.Type {
	case "ByteLevel":
		if s.UseRegex != nil && !*s.UseRegex {
			return nil, nil
		}
		return newSplitter(GPT2Pattern)
	case "Digits":
		if s.IndividualDigits {
			return splitDigits(1), nil
		}
		return splitDigits(-1), nil
	case "Split":
		return readSplit(s)
	}
	return nil, fmt.Errorf("pre_tokenizer %q is not understood here, want Split, Digits or ByteLevel", s.Type)
}

func readSplit(s *stageJSON) (splitter, error) {
	if s.Pattern == nil || s.Pattern.Regex == "" {
		return nil, errors.New("pre_tokenizer Split: want a Regex pattern")
	}
	switch {
	case s.Behavior == "Isolated": // invert changes nothing: every stretch is a piece either way
		return newSplitter(s.Pattern.Regex)
	case s.Behavior == "Removed" && isTrue(s.Invert): // the matches are the pieces
		re, err := compile(s.Pattern.Regex)
		return func(text string, yield func(string)) {
			eachMatch(re, text, func(piece string, matched bool) {
				if matched {
					yield(piece)
				}
			})
		}, err
	}
	return nil, fmt.Errorf("pre_tokenizer Split has behavior %q and invert %v, want Isolated, or Removed with invert true", s.Behavior, isTrue(s.Invert))
}

// splitDigits cuts around runs of at most most numbers; -1 is any length.
func splitDigits(most int) splitter {
	return cutWith(func(p *planeClasses, text string, i int) int {
		first, width := p.at(text, i)
		if first != number {
			for first != number && width > 0 {
				i += width
				first, width = p.at(text, i)
			}
			return i
		}
		for n := 0; first == number && width > 0 && n != most; n++ {
			i += width
			first, width = p.at(text, i)
		}
		return i
	})
}

// withPrefixSpace hands on every piece with a space before it that has none.
func withPrefixSpace(yield func(string)) func(string) {
	return func(piece string) {
		if !strings.HasPrefix(piece, " ") {
			piece = " " + piece
		}
		yield(piece)
	}
}

// prefixedSplit is ByteLevel with both: the space comes first, then its expression.
func prefixedSplit(split splitter) splitter {
	return func(text string, yield func(string)) {
		withPrefixSpace(func(piece string) { split(piece, yield) })(text)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// readNormalizer returns what is done to text before it is split.
func readNormalizer(n *stageJSON) ([]func(string) string, error) {
	switch {
	case n == nil:
		return nil, nil
	case n.Type == "NFC":
		return []func(string) string{toNFC}, nil
	case n.Type == "Sequence":
		var all []func(string) string
		for _, part := range n.Normalizers {
			more, err := readNormalizer(part)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
		return slices.Clip(all), nil
	}
	return nil, fmt.Errorf("normalizer %q, want NFC, a Sequence of NFC, or none", n.Type)
}
