package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

func readNormalizer(n *stageJSON) (nfc bool, err error) {
	switch {
	case n == nil:
		return false, nil
	case n.Type == "NFC":
		return true, nil
	}
	return false, fmt.Errorf("normalizer %q, want NFC or none", n.Type)
}

// readPreTokenizer accepts Split(expression) followed by a plain ByteLevel, or ByteLevel with its own expression.
func readPreTokenizer(p *stageJSON) (pattern string, err error) {
	if p == nil {
		return "", errors.New("pre_tokenizer is missing, want ByteLevel")
	}
	stages := p.Pretokenizers
	if p.Type != "Sequence" {
		stages = []*stageJSON{p}
	}
	byteLevel := false
	for _, s := range stages {
		switch {
		case s.Type == "Split" && pattern == "" && !byteLevel:
			if s.Pattern == nil || s.Pattern.Regex == "" || s.Behavior != "Isolated" || isTrue(s.Invert) {
				return "", errors.New("pre_tokenizer Split: want a Regex pattern, behavior Isolated and invert false")
			}
			pattern = s.Pattern.Regex
		case s.Type == "ByteLevel" && !byteLevel:
			byteLevel = true
			if isTrue(s.AddPrefixSpace) {
				return "", errors.New("pre_tokenizer ByteLevel has add_prefix_space true, want false")
			}
			usesOwn := s.UseRegex == nil || *s.UseRegex
			if usesOwn && pattern != "" {
				return "", errors.New("pre_tokenizer ByteLevel has use_regex true after a Split, want false")
			}
			if usesOwn {
				pattern = gpt2Pattern
			}
		default:
			return "", fmt.Errorf("pre_tokenizer %q is not understood here, want Split then ByteLevel", s.Type)
		}
	}
	if !byteLevel || pattern == "" {
		return "", errors.New("pre_tokenizer has no ByteLevel stage with an expression")
	}
	return pattern, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

func readAdded(list []addedJSON) ([]AddedToken, error) {
	added := make([]AddedToken, len(list))
	for i, a := range list {
		if a.SingleWord || a.LStrip || a.RStrip {
			return nil, fmt.Errorf("added token %q has single_word, lstrip or rstrip set, want all false", a.Content)
		}
		added[i] = AddedToken{ID: a.ID, Content: a.Content, Special: a.Special}
	}
	return added, nil
}

func readModel(m modelJSON) (tokens []string, merges []pair, err error) {
	switch {
	case m.Type != "BPE" && m.Type != "":
		return nil, nil, fmt.Errorf("model type %q, want BPE", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, nil, fmt.Errorf("model dropout %v, want none", *m.Dropout)
	case m.ByteFallback:
		return nil, nil, errors.New("model has byte_fallback true, want false: it is not a byte-level BPE")
	case m.Prefix != nil && *m.Prefix != "", m.Suffix != nil && *m.Suffix != "":
		return nil, nil, errors.New("model has a continuing_subword_prefix or end_of_word_suffix, want none")
	}
	var vocab map[string]int32
	if err := json.Unmarshal(m.Vocab, &vocab); err != nil {
		return nil, nil, fmt.Errorf("model vocab: %w", err)
	}
	if tokens, err = orderVocab(vocab); err != nil {
		return nil, nil, err
	}
	merges = make([]pair, len(m.Merges))
	for i, both := range m.Merges {
		left, okLeft := vocab[both[0]]
		right, okRight := vocab[both[1]]
		if !okLeft || !okRight {
			return nil, nil, fmt.Errorf("merge %d of %q and %q, want both in the vocabulary", i, both[0], both[1])
		}
		merges[i] = pair{left, right}
	}
	return tokens, merges, nil
}

// maxVocab bounds the ids a file may use, so that a damaged one cannot ask for all the memory.
const maxVocab = 1 << 22

func orderVocab(vocab map[string]int32) ([]string, error) {
	size := int32(0)
	for token, id := range vocab {
		if id < 0 || id >= maxVocab {
			return nil, fmt.Errorf("vocabulary gives %q the id %d, want 0 to %d", token, id, maxVocab-1)
		}
		size = max(size, id+1)
	}
	tokens := make([]string, size)
	for token, id := range vocab {
		if tokens[id] != "" {
			return nil, fmt.Errorf("vocabulary gives id %d to both %q and %q", id, min(token, tokens[id]), max(token, tokens[id]))
		}
		tokens[id] = token
	}
	return tokens, nil
}
