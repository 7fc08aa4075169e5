package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the files of a Hugging Face model folder.
const (
	ConfigFile  = "config.json"
	WeightsFile = "model.safetensors"            // all weights in one file
	IndexFile   = "model.safetensors.index.json" // or which file holds which tensor
)

// maxIndex is the size that an index may have, in bytes: a name of a tensor and of a file take about 100.
const maxIndex = 1 << 24

// weightsFiles are the open files of a folder's weights.
type weightsFiles struct {
	dir   string
	files map[string]*stored // by name
	at    map[string]string  // a tensor's file
	open  []*os.File
}

// openWeights opens model.safetensors or, if there is none, the files of its index, and checks their headers against each other.
func openWeights(dir string) (_ *weightsFiles, err error) {
	w := &weightsFiles{dir: dir, files: map[string]*stored{}, at: map[string]string{}}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	index, err := weightsIndex(dir)
	if err != nil {
		return w, err
	}
	for _, name := range slices.Sorted(maps.Keys(index.files())) {
		if err := w.add(name); err != nil {
			return w, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
	}
	for _, tensor := range slices.Sorted(maps.Keys(index.WeightMap)) {
		if w.at[tensor] != index.WeightMap[tensor] {
			return w, fmt.Errorf("%s: tensor %s is to be in %s, which lacks it", filepath.Join(dir, IndexFile), tensor, index.WeightMap[tensor])
		}
	}
	for _, tensor := range slices.Sorted(maps.Keys(w.at)) {
		if _, listed := index.WeightMap[tensor]; !listed && !index.single {
			return w, fmt.Errorf("%s: tensor %s is in no entry of %s", filepath.Join(dir, w.at[tensor]), tensor, IndexFile)
		}
	}
	return w, nil
}

// add opens one file.
func (w *weightsFiles) add(name string) error {
	st, err := os.Stat(filepath.Join(w.dir, name))
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() { // a pipe would hold the reader for ever
		return fmt.Errorf("is not a file (%s)", st.Mode())
	}
	f, err := os.Open(filepath.Join(w.dir, name))
	if err != nil {
		return err
	}
	w.open = append(w.open, f)
	s, err := openStored(f, st.Size())
	if err != nil {
		return err
	}
	for _, tensor := range s.names {
		if other, dup := w.at[tensor]; dup {
			return fmt.Errorf("tensor %s is also in %s", tensor, other)
		}
		w.at[tensor] = name
	}
	w.files[name] = s
	return nil
}

func (w *weightsFiles) close() {
	for _, f := range w.open {
		f.Close()
	}
}

// chunks is stored.chunks of the file that has the tensor.
func (w *weightsFiles) chunks(tensor string, f func(at int, piece []float32) error) error {
	name := w.at[tensor]
	if err := w.files[name].chunks(tensor, f); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(w.dir, name), err)
	}
	return nil
}

// index is model.safetensors.index.json. Its metadata are bookkeeping: every tensor is checked by itself.
type index struct {
	Metadata  map[string]any    `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"` // a tensor's file

	single bool // there is no index: all tensors are in WeightsFile
}

func (i index) files() map[string]bool {
	if i.single {
		return map[string]bool{WeightsFile: true}
	}
	out := map[string]bool{}
	for _, name := range i.WeightMap {
		out[name] = true
	}
	return out
}

// weightsIndex says which files of a folder hold weights.
func weightsIndex(dir string) (index, error) {
	_, err := os.Stat(filepath.Join(dir, WeightsFile))
	if err == nil {
		return index{single: true}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return index{}, fmt.Errorf("model weights: %w", err)
	}
	path := filepath.Join(dir, IndexFile)
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return index{}, fmt.Errorf("model weights: %s has neither %s nor %s: %w", dir, WeightsFile, IndexFile, err)
	case err != nil:
		return index{}, fmt.Errorf("model weights: %w", err)
	case !st.Mode().IsRegular():
		return index{}, fmt.Errorf("%s is not a file (%s)", path, st.Mode())
	case st.Size() > maxIndex:
		return index{}, fmt.Errorf("%s has %d bytes, want at most %d", path, st.Size(), maxIndex)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return index{}, fmt.Errorf("model weights: %w", err)
	}
	i, err := parseIndex(raw)
	if err != nil {
		return index{}, fmt.Errorf("%s: %w", path, err)
	}
	return i, nil
}

// maxShards bounds the files that are open at once; the largest published models have about 200.
const maxShards = 1024

// parseIndex wants every tensor once, in a file of the folder itself.
func parseIndex(raw []byte) (index, error) {
	members, err := object(raw)
	if err != nil {
		return index{}, err
	}
	var i index
	if err := json.Unmarshal(raw, &i); err != nil {
		return index{}, err
	}
	if m, err := object(members["weight_map"]); err != nil || len(m) == 0 {
		return index{}, errors.Join(errors.New("weight_map names no file of any tensor"), err)
	}
	files := i.files()
	if len(files) > maxShards {
		return index{}, fmt.Errorf("weight_map names %d files, want at most %d", len(files), maxShards)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != filepath.Base(name) || strings.ContainsAny(name, `/\`) || !strings.HasSuffix(name, ".safetensors") {
			return index{}, fmt.Errorf("weight_map names the file %q, want a .safetensors file beside the index", name)
		}
	}
	return i, nil
}

// Files lists the files of a Hugging Face folder that Load reads: config.json, then those of the weights.
func Files(dir string) ([]string, error) {
	i, err := weightsIndex(dir)
	if err != nil {
		return nil, err
	}
	out := []string{ConfigFile}
	if !i.single {
		out = append(out, IndexFile)
	}
	return append(out, slices.Sorted(maps.Keys(i.files()))...), nil
}
