package model

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/restar-rl/restar/kernels"
)

// headTensor is the head's name. A tied model may carry it as a copy of its embedding.
const (
	headTensor  = "lm_head.weight"
	embedTensor = "model.embed_tokens.weight"
)

// derivedSuffix ends tensors of older checkpoints that the configuration says already.
const derivedSuffix = ".rotary_emb.inv_freq"

// Load reads a Hugging Face folder: config.json, and model.safetensors or the files of its index, with every tensor of the configuration
// and no other. Weights are read piece by piece into their place: files are never held whole.
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
	w, err := openWeights(dir)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.fit(cfg); err != nil { // before memory is taken for what a wrong configuration asks for
		return nil, err
	}
	m, err := allocate(b, cfg, opts...)
	if err != nil {
		return nil, err
	}
	for _, p := range m.params {
		if err := w.chunks(p.Name, func(at int, piece []float32) error { copy(p.Data[at:], piece); return nil }); err != nil {
			return nil, err
		}
	}
	if _, given := w.at[headTensor]; given && cfg.TieWordEmbeddings {
		if err := w.chunks(headTensor, m.equalsEmbedding); err != nil {
			return nil, err
		}
	}
	m.WeightsChanged()
	return m, nil
}

// equalsEmbedding wants a piece of a tied model's head to repeat the embedding.
func (m *Model) equalsEmbedding(at int, piece []float32) error {
	for i, v := range piece {
		if e := m.params[0].Data[at+i]; math.Float32bits(v) != math.Float32bits(e) {
			return fmt.Errorf("element %d is %v, want %v as in %s: config.json says tie_word_embeddings", at+i, v, e, embedTensor)
		}
	}
	return nil
}

// fit wants the files to hold the tensors of a configuration in its shapes, and no others.
func (w *weightsFiles) fit(c Config) error {
	shapes := map[string][]int{}
	for name, file := range w.at {
		if !strings.HasSuffix(name, derivedSuffix) {
			shapes[name] = w.files[file].entries[name].Shape
		}
	}
	name, err := c.fit(shapes)
	if file, ok := w.at[name]; ok {
		return fmt.Errorf("%s: %w", filepath.Join(w.dir, file), err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(w.dir, w.list()), err)
	}
	return nil
}

// list is the file that says which tensors there are.
func (w *weightsFiles) list() string {
	for file := range w.files {
		if len(w.files) == 1 {
			return file
		}
	}
	return IndexFile
}

// fit names the first tensor, if any, that keeps a set of tensors from being the configuration's weights.
func (c Config) fit(shapes map[string][]int) (name string, err error) {
	wanted, missing := map[string]bool{}, []string{}
	for _, p := range c.layout() {
		wanted[p.Name] = true
		shape, ok := shapes[p.Name]
		if !ok {
			missing = append(missing, p.Name)
			continue
		}
		if !slices.Equal(shape, p.Shape) {
			return p.Name, fmt.Errorf("tensor %s has shape %v, want %v by the configuration", p.Name, shape, p.Shape)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("%d of the configuration's %d tensors are missing, among them %s", len(missing), len(wanted), strings.Join(missing[:min(len(missing), 3)], ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		switch tied := name == headTensor && c.TieWordEmbeddings; {
		case tied && !slices.Equal(shapes[name], shapes[embedTensor]):
			return name, fmt.Errorf("tensor %s has shape %v, want the embedding's, %v", name, shapes[name], shapes[embedTensor])
		case !tied && !wanted[name]:
			return name, fmt.Errorf("tensor %s of shape %v is not part of the configured model", name, shapes[name])
		}
	}
	return "", nil
}

// SetTensors replaces all weights. It refuses, before it changes any, a missing, unexpected or misshapen tensor. A tied model may
// carry its head as lm_head.weight if it equals the embedding.
func (m *Model) SetTensors(ts []Tensor) error {
	byName, shapes := map[string]Tensor{}, map[string][]int{}
	for _, t := range ts {
		if _, dup := byName[t.Name]; dup {
			return fmt.Errorf("tensor %s is given twice", t.Name)
		}
		if len(t.Data) != t.Elements() {
			return fmt.Errorf("tensor %s has shape %v and %d elements", t.Name, t.Shape, len(t.Data))
		}
		byName[t.Name], shapes[t.Name] = t, t.Shape
	}
	if _, err := m.Config.fit(shapes); err != nil {
		return err
	}
	if head, ok := byName[headTensor]; ok && m.Config.TieWordEmbeddings && !slices.Equal(head.Data, byName[embedTensor].Data) {
		return errors.New("tensor " + headTensor + " differs from " + embedTensor + ", to which the configuration ties it")
	}
	for _, p := range m.params {
		copy(p.Data, byName[p.Name].Data)
	}
	m.WeightsChanged()
	return nil
}
