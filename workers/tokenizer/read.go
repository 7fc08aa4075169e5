package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// readSettings refuses what the reference library would do to every text beside encoding it.
func readSettings(file tokenizerJSON) error {
	for key, value := range map[string]json.RawMessage{"truncation": file.Truncation, "padding": file.Padding} {
		if len(value) > 0 && string(value) != "null" {
			return fmt.Errorf("%s is set, want null: restar neither cuts nor pads; set it to null", key)
		}
	}
	if d := file.Decoder; d == nil || d.Type != "ByteLevel" {
		return errors.New("decoder is not ByteLevel, want a byte-level tokenizer")
	}
	return nil
}

func readAdded(list []addedJSON) []AddedToken {
	added := make([]AddedToken, len(list))
	for i, a := range list {
		added[i] = AddedToken{a.ID, a.Content, a.Special, a.SingleWord, a.LStrip, a.RStrip, a.Normalized}
	}
	return added
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
