package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The two files of a Hugging Face tokenizer.
const (
	tokenizerFile = "tokenizer.json"
	configFile    = "tokenizer_config.json"
)

// Load reads tokenizer.json, and tokenizer_config.json where there is one, from a Hugging Face folder. Anything in the file
// that would change ids and is not understood is an error that names it.
func Load(dir string) (*Tokenizer, error) {
	path := filepath.Join(dir, tokenizerFile)
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	config, err := os.ReadFile(filepath.Join(dir, configFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.config = config
	return t, nil
}

func parse(body []byte) (*Tokenizer, error) {
	var file tokenizerJSON
	if err := json.Unmarshal(body, &file); err != nil {
		return nil, err
	}
	if err := readSettings(file); err != nil {
		return nil, err
	}
	v := vocabulary{added: readAdded(file.AddedTokens), ignoreMerges: file.Model.IgnoreMerges}
	var err error
	if v.normalizers, err = readNormalizer(file.Normalizer); err != nil {
		return nil, err
	}
	if v.pre, err = readPreTokenizer(file.PreTokenizer); err != nil {
		return nil, err
	}
	if v.frame, err = readPostProcessor(file.PostProcessor); err != nil {
		return nil, err
	}
	if v.tokens, v.merges, err = readModel(file.Model); err != nil {
		return nil, err
	}
	t, err := newTokenizer(v)
	if err != nil {
		return nil, err
	}
	t.file = slices.Clone(body)
	return t, nil
}

// Save writes tokenizer.json and tokenizer_config.json into dir, which must exist. Each file appears whole or not at all.
func (t *Tokenizer) Save(dir string) error {
	files, err := t.Files()
	if err != nil {
		return err
	}
	for _, name := range []string{tokenizerFile, configFile} {
		if err := writeWhole(filepath.Join(dir, name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// marshal writes the file of a tokenizer that was trained here: NFC, Qwen2Pattern and plain added tokens.
func (t *Tokenizer) marshal() ([]byte, error) {
	vocab, err := t.marshalVocab()
	if err != nil {
		return nil, err
	}
	no := false
	byteLevel := stageJSON{Type: "ByteLevel", AddPrefixSpace: &no, TrimOffsets: &no, UseRegex: &no}
	file := tokenizerJSON{
		Version: "1.0", Normalizer: &stageJSON{Type: "NFC"}, Decoder: &byteLevel,
		PreTokenizer: &stageJSON{Type: "Sequence", Pretokenizers: []*stageJSON{
			{Type: "Split", Pattern: &patternJSON{Regex: Qwen2Pattern}, Behavior: "Isolated", Invert: &no}, &byteLevel,
		}},
		PostProcessor: &postJSON{Type: "ByteLevel", AddPrefixSpace: &no, TrimOffsets: &no, UseRegex: &no},
		Model:         modelJSON{Type: "BPE", Prefix: new(string), Suffix: new(string), Vocab: vocab},
	}
	for _, a := range t.added {
		file.AddedTokens = append(file.AddedTokens, addedJSON{ID: a.ID, Content: a.Content, Special: a.Special})
	}
	for _, p := range t.merges {
		file.Model.Merges = append(file.Model.Merges, mergeJSON{t.tokens[p.left], t.tokens[p.right]})
	}
	return encodeIndented(file)
}

// marshalVocab writes the vocabulary in id order, which a Go map would not keep.
func (t *Tokenizer) marshalVocab() (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for id, token := range t.tokens {
		if token == "" {
			continue // an id that only an added token has
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		key, err := encodeJSON(token)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%d", key, id)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func writeWhole(path string, body []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(body)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("tokenizer: write %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

// Files returns the two files of the tokenizer by name, for a store that is not a folder.
func (t *Tokenizer) Files() (map[string][]byte, error) {
	var err error
	body, config := slices.Clone(t.file), slices.Clone(t.config)
	if body == nil {
		if body, err = t.marshal(); err != nil {
			return nil, err
		}
	}
	if config == nil {
		if config, err = t.newConfig(); err != nil {
			return nil, err
		}
	}
	return map[string][]byte{tokenizerFile: body, configFile: config}, nil
}

// FromFiles is Load for files that are not in a folder, as Files returned them.
func FromFiles(files map[string][]byte) (*Tokenizer, error) {
	body, ok := files[tokenizerFile]
	if !ok {
		return nil, fmt.Errorf("tokenizer: %s is missing", tokenizerFile)
	}
	t, err := parse(body)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", tokenizerFile, err)
	}
	t.config = slices.Clone(files[configFile])
	return t, nil
}
