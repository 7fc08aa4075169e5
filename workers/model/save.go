package model

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// SaveOptions say how a folder stores weights.
type SaveOptions struct {
	DType      DType // empty is F32, which loses nothing; weights that were read as BF16 or F16 lose nothing in that type
	ShardBytes int64 // most bytes of weights in one file; a larger tensor has a file of its own; 0 is 5 GB, the Hugging Face default
}

// defaultShardBytes is what transformers writes into one file.
const defaultShardBytes = 5_000_000_000

// Save is SaveAs with the defaults.
func (m *Model) Save(dir string) error { return m.SaveAs(dir, SaveOptions{}) }

// SaveAs writes a Hugging Face folder: one file of weights, or several and their index when they are larger than ShardBytes. Each file
// appears whole or not at all, config.json last; files of weights that an earlier save left and that no longer count are removed.
func (m *Model) SaveAs(dir string, o SaveOptions) error {
	if o.DType == "" {
		o.DType = F32
	}
	if o.ShardBytes == 0 {
		o.ShardBytes = defaultShardBytes
	}
	if err := o.DType.check(); err != nil {
		return fmt.Errorf("model folder: %w", err)
	}
	if o.ShardBytes < 0 {
		return fmt.Errorf("model folder: ShardBytes is %d, want at least 0", o.ShardBytes)
	}
	cfg, err := m.Config.encode(dtypes[o.DType].torch)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("model folder: %w", err)
	}
	if err := m.saveWeights(dir, o); err != nil {
		return err
	}
	return writeWhole(filepath.Join(dir, ConfigFile), func(w io.Writer) error { _, err := w.Write(cfg); return err })
}

func (m *Model) saveWeights(dir string, o SaveOptions) error {
	shards := shard(m.Tensors(), o)
	i := index{WeightMap: map[string]string{}}
	written := []string{}
	total := int64(0)
	for k, ts := range shards {
		name := WeightsFile
		if len(shards) > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", k+1, len(shards))
		}
		err := writeWhole(filepath.Join(dir, name), func(w io.Writer) error { return WriteSafetensors(w, ts, o.DType, map[string]string{"format": "pt"}) })
		if err != nil {
			return err
		}
		written = append(written, name)
		for _, t := range ts {
			i.WeightMap[t.Name] = name
			total += int64(len(t.Data) * o.DType.size())
		}
	}
	if len(shards) > 1 {
		i.Metadata = map[string]any{"total_size": total}
		err := writeWhole(filepath.Join(dir, IndexFile), func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(i)
		})
		if err != nil {
			return err
		}
		written = append(written, IndexFile)
	}
	return removeOthers(dir, written)
}

// removeOthers removes the weights' files that are not among those just written.
func removeOthers(dir string, written []string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		numbered, _ := filepath.Match("model-?????-of-?????.safetensors", e.Name())
		if !numbered && e.Name() != WeightsFile && e.Name() != IndexFile || slices.Contains(written, e.Name()) {
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
	}
	return err
}

// shard cuts tensors, in their order, into runs of at most o.ShardBytes.
func shard(ts []Tensor, o SaveOptions) (out [][]Tensor) {
	size := int64(0)
	for i, t := range ts {
		n := int64(len(t.Data) * o.DType.size())
		if i == 0 || size+n > o.ShardBytes {
			out, size = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], t)
		size += n
	}
	return out
}

// writeWhole writes beside the target and renames.
func writeWhole(path string, content func(w io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".partial-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // fails once renamed
	w := bufio.NewWriterSize(f, chunkBytes)
	err = content(w)
	err = errors.Join(err, w.Flush(), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
