package model

import (
	"encoding/json"
	"fmt"
)

// GenerationFile says in a Hugging Face folder how its model is meant to be sampled from. Which ids end a sequence is all that is
// read of it.
const GenerationFile = "generation_config.json"

// ParseGeneration returns the ids that a generation_config.json calls the end of a sequence, in its order; none where it names none.
func ParseGeneration(raw []byte) ([]int32, error) {
	members, err := object(raw)
	if err != nil {
		return nil, fmt.Errorf("not a %s: %w", GenerationFile, err)
	}
	value, ok := members["eos_token_id"]
	if !ok {
		return nil, nil
	}
	var ids tokenIDs
	if err := json.Unmarshal(value, &ids); err != nil {
		return nil, fmt.Errorf("%s: eos_token_id is %s: %w", GenerationFile, short(value), err)
	}
	return ids, nil
}

// Ends are the ids that a folder calls the end of a sequence, each once: those of its config.json, then those that the content of
// its generation_config.json adds. generation is nil where there is no such file.
func (c Config) Ends(generation []byte) ([]int32, error) {
	var ends []int32
	if c.EOSTokenID != nil {
		ends = append(ends, *c.EOSTokenID)
	}
	ends = append(ends, c.MoreEOSTokenIDs...)
	if generation != nil {
		more, err := ParseGeneration(generation)
		if err != nil {
			return nil, err
		}
		ends = append(ends, more...)
	}
	return distinct(ends), nil
}

// distinct keeps the first of equal ids.
func distinct(ids []int32) []int32 {
	var out []int32
	seen := map[int32]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
