package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/restar-rl/restar/kernels"
)

// Names of the files of a Hugging Face model folder.
const (
	ConfigFile  = "config.json"
	WeightsFile = "model.safetensors"
)

// Load reads a Hugging Face folder: config.json and model.safetensors with every tensor of the configuration, and no other.
func Load(dir string, opts ...Option) (*Model, error) {
	b, err := host()
	if err != nil {
		return nil, err
	}
	return load(b, dir, opts...)
}

func load(b kernels.Backend, dir string, opts ...Option) (*Model, error) {
	cfg, err := ReadConfig(filepath.Join(dir, ConfigFile))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, WeightsFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("model weights: %w (weights must be in one file of this name)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("model weights: %w", err)
	}
	ts, _, err := DecodeSafetensors(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m, err := allocate(b, cfg, opts...)
	if err != nil {
		return nil, err
	}
	if err := m.SetTensors(ts); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// SetTensors replaces all weights. It refuses, before it changes any, a missing, unexpected or misshapen tensor. A tied model may
// carry its head as lm_head.weight if it equals the embedding.
func (m *Model) SetTensors(ts []Tensor) error {
	byName := map[string]Tensor{}
	for _, t := range ts {
		if _, dup := byName[t.Name]; dup {
			return fmt.Errorf("tensor %s is given twice", t.Name)
		}
		byName[t.Name] = t
	}
	var missing []string
	for _, p := range m.params {
		t, ok := byName[p.Name]
		if !ok {
			missing = append(missing, p.Name)
			continue
		}
		if !slices.Equal(t.Shape, p.Shape) || len(t.Data) != len(p.Data) {
			return fmt.Errorf("tensor %s has shape %v, want %v by the configuration", p.Name, t.Shape, p.Shape)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d tensors are missing: %s", len(missing), strings.Join(missing[:min(len(missing), 3)], ", "))
	}
	if err := m.unexpected(ts, byName); err != nil {
		return err
	}
	for _, p := range m.params {
		copy(p.Data, byName[p.Name].Data)
	}
	m.WeightsChanged()
	return nil
}

func (m *Model) unexpected(ts []Tensor, byName map[string]Tensor) error {
	for _, t := range ts {
		if slices.ContainsFunc(m.params, func(p Param) bool { return p.Name == t.Name }) {
			continue
		}
		if t.Name == "lm_head.weight" && slices.Equal(t.Data, byName["model.embed_tokens.weight"].Data) {
			continue
		}
		return fmt.Errorf("tensor %s is not part of the configured model", t.Name)
	}
	return nil
}

// Save writes a Hugging Face folder. Each file appears whole or not at all.
func (m *Model) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("model folder: %w", err)
	}
	cfg, err := m.Config.encode("float32")
	if err != nil {
		return err
	}
	weights, err := EncodeSafetensors(m.Tensors(), map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	if err := writeWhole(filepath.Join(dir, WeightsFile), weights); err != nil {
		return err
	}
	return writeWhole(filepath.Join(dir, ConfigFile), cfg)
}

// writeWhole writes beside the target and renames.
func writeWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".partial-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // fails once renamed
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
