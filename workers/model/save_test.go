package model

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// rounded makes every weight a number that dtype has.
func rounded(m *Model, d DType) {
	for i, v := range m.data {
		switch d {
		case BF16:
			m.data[i] = math.Float32frombits(uint32(floatToBF16(v)) << 16)
		case F16:
			m.data[i] = halfToFloat(floatToHalf(v))
		}
	}
	m.WeightsChanged()
}

// folder reads all files of a folder.
func folder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestAFolderOfEveryFamilyAndTypeReadsBackToTheBit(t *testing.T) {
	for name, c := range everyFamily() {
		for _, o := range []SaveOptions{{}, {DType: BF16}, {DType: F16}, {DType: BF16, ShardBytes: 8000}, {ShardBytes: 20000}} {
			m, err := New(c, 3)
			if err != nil {
				t.Fatal(err)
			}
			rounded(m, o.DType)
			a, b := t.TempDir(), t.TempDir()
			if err := m.SaveAs(a, o); err != nil {
				t.Fatal(err)
			}
			r, err := Load(a)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(r.Config, m.Config) {
				t.Errorf("%s: config is %+v, want %+v", name, r.Config, m.Config)
			}
			if i := sameBits(r.data, m.data); i >= 0 {
				t.Errorf("%s, %+v: weight %d differs", name, o, i)
			}
			if err := r.SaveAs(b, o); err != nil {
				t.Fatal(err)
			}
			x, y := folder(t, a), folder(t, b)
			for file := range x {
				if !bytes.Equal(x[file], y[file]) || len(x) != len(y) {
					t.Errorf("%s, %+v: %s of the second save differs from the first", name, o, file)
				}
			}
		}
	}
}

func TestShardsKeepTheirLimitAndTheIndexNamesEveryTensor(t *testing.T) {
	m, err := New(small(false), 3)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 6000
	dir := t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	if err := m.SaveAs(dir, SaveOptions{ShardBytes: limit}); err != nil {
		t.Fatal(err)
	}
	files := folder(t, dir)
	if _, stale := files[WeightsFile]; stale || files[IndexFile] == nil {
		t.Fatal("the single file of an earlier save is still there, or no index is")
	}
	var i struct {
		Metadata struct {
			Size int `json:"total_size"`
		} `json:"metadata"`
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(files[IndexFile], &i); err != nil {
		t.Fatal(err)
	}
	if i.Metadata.Size != 4*len(m.data) || len(i.Map) != len(m.params) {
		t.Errorf("the index has %d bytes and %d tensors, want %d and %d", i.Metadata.Size, len(i.Map), 4*len(m.data), len(m.params))
	}
	shards := 0
	for name, raw := range files {
		if !strings.HasSuffix(name, ".safetensors") {
			continue
		}
		shards++
		ts, _, err := DecodeSafetensors(raw)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, x := range ts {
			size += 4 * len(x.Data)
			if i.Map[x.Name] != name {
				t.Errorf("%s is in %s, the index says %q", x.Name, name, i.Map[x.Name])
			}
		}
		if size > limit && len(ts) > 1 {
			t.Errorf("%s holds %d bytes in %d tensors, want at most %d", name, size, len(ts), limit)
		}
	}
	if shards < 3 {
		t.Errorf("%d shards, want several", shards)
	}
	names, err := Files(dir)
	if err != nil || len(names) != shards+2 || !slices.Contains(names, ConfigFile) || !slices.Contains(names, IndexFile) {
		t.Errorf("Files lists %v (%v), want config, index and %d shards", names, err, shards)
	}
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	if got := folder(t, dir); len(got) != 2 {
		t.Errorf("a later save into one file leaves %d files, want config and weights", len(got))
	}
	if names, err := Files(dir); err != nil || !slices.Equal(names, []string{ConfigFile, WeightsFile}) {
		t.Errorf("Files lists %v (%v), want config and weights", names, err)
	}
}

// damage is a change of a folder of two or more shards.
type damage struct {
	change func(t *testing.T, dir string)
	names  []string
}

func rewrite(name string, f func(raw []byte) []byte) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f(raw), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// retensor changes the tensors that a file holds.
func retensor(name string, f func(ts []Tensor) []Tensor) func(t *testing.T, dir string) {
	return rewrite(name, func(raw []byte) []byte {
		ts, meta, err := DecodeSafetensors(raw)
		if err != nil {
			panic(err)
		}
		out, err := EncodeSafetensors(f(ts), meta)
		if err != nil {
			panic(err)
		}
		return out
	})
}

func replace(old, replacement string) func(raw []byte) []byte {
	return func(raw []byte) []byte {
		if !bytes.Contains(raw, []byte(old)) {
			panic(old + " is not there")
		}
		return bytes.Replace(raw, []byte(old), []byte(replacement), 1)
	}
}

func TestADamagedFolderIsRefusedByFileTensorFoundAndExpected(t *testing.T) {
	const first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	for what, d := range map[string]damage{
		"no config":   {func(_ *testing.T, dir string) { os.Remove(filepath.Join(dir, ConfigFile)) }, []string{ConfigFile}},
		"no index":    {func(_ *testing.T, dir string) { os.Remove(filepath.Join(dir, IndexFile)) }, []string{WeightsFile, IndexFile}},
		"no shard":    {func(_ *testing.T, dir string) { os.Remove(filepath.Join(dir, second)) }, []string{second}},
		"torn shard":  {rewrite(second, func(raw []byte) []byte { return raw[:len(raw)-1] }), []string{second, "tensor model.norm.weight", "truncated", "data ends at"}},
		"torn header": {rewrite(first, func(raw []byte) []byte { return raw[:40] }), []string{first, "40 bytes"}},
		"empty shard": {rewrite(first, func([]byte) []byte { return nil }), []string{first, "0 bytes"}},
		"other type":  {rewrite(first, replace(`"F32"`, `"U32"`)), []string{first, "tensor ", "U32", "F32, BF16 or F16"}},
		"misshapen":   {rewrite(first, replace(`"shape":[53,20]`, `"shape":[20,53]`)), []string{first, "model.embed_tokens.weight", "[20 53]", "[53 20]"}},
		"not in map":  {rewrite(IndexFile, replace(`"model.norm.weight"`, `"model.norms.weight"`)), []string{IndexFile, "model.norms.weight", second}},
		"wrong file":  {rewrite(IndexFile, replace(`"model.norm.weight": "`+second, `"model.norm.weight": "`+first)), []string{IndexFile, "model.norm.weight", first}},
		"unlisted":    {retensor(first, func(ts []Tensor) []Tensor { return append(ts, Tensor{"extra", []int{1}, []float32{1}}) }), []string{first, "extra", IndexFile}},
		"in two files": {retensor(second, func(ts []Tensor) []Tensor {
			return append(ts, Tensor{"model.embed_tokens.weight", []int{1}, []float32{1}})
		}), []string{second, "model.embed_tokens.weight", first}},
		"outside":         {rewrite(IndexFile, replace(first, "../x.safetensors")), []string{IndexFile, "../x.safetensors", "beside"}},
		"twice in index":  {rewrite(IndexFile, replace(`"model.norm.weight"`, `"lm_head.weight"`)), []string{IndexFile, "lm_head.weight", "twice"}},
		"no map":          {rewrite(IndexFile, func([]byte) []byte { return []byte(`{"metadata": {}}`) }), []string{IndexFile, "weight_map"}},
		"not a number":    {rewrite(second, func(raw []byte) []byte { return append(raw[:len(raw)-4], 0, 0, 0xc0, 0x7f) }), []string{second, "model.norm.weight", "element 19 is NaN", "finite"}},
		"another config":  {rewrite(ConfigFile, replace(`"num_hidden_layers": 2`, `"num_hidden_layers": 3`)), []string{IndexFile, "missing", "of the configuration's", "model.layers.2"}},
		"one layer less":  {rewrite(ConfigFile, replace(`"num_hidden_layers": 2`, `"num_hidden_layers": 1`)), []string{"model.layers.1", "not part"}},
		"enormous config": {rewrite(ConfigFile, replace(`"vocab_size": 53`, `"vocab_size": 4000000`)), []string{first, "model.embed_tokens.weight", "[53 20]", "[4000000 20]"}},
	} {
		t.Run(what, func(t *testing.T) {
			m, err := New(small(false), 3)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := m.SaveAs(dir, SaveOptions{ShardBytes: 28000}); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err != nil {
				t.Fatal(err)
			}
			d.change(t, dir)
			_, err = Load(dir)
			for _, name := range d.names {
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("error is %v, want one that names %s", err, name)
				}
			}
		})
	}
}

func TestATiedModelsFileMayRepeatItsEmbeddingAsHead(t *testing.T) {
	m, err := New(small(true), 3)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	head := slices.Clone(m.Tensors()[0].Data)
	add := func(ts []Tensor) []Tensor {
		return append(ts, Tensor{headTensor, []int{53, 20}, head}, Tensor{"model.layers.0.self_attn.rotary_emb.inv_freq", []int{5}, make([]float32, 5)})
	}
	retensor(WeightsFile, add)(t, dir)
	if _, err := Load(dir); err != nil {
		t.Error(err)
	}
	head[7]++
	retensor(WeightsFile, func(ts []Tensor) []Tensor {
		return add(slices.DeleteFunc(ts, func(x Tensor) bool { return x.Name == headTensor || strings.HasSuffix(x.Name, derivedSuffix) }))
	})(t, dir)
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "element 7") || !strings.Contains(err.Error(), headTensor) {
		t.Errorf("a head that differs from the tied embedding gave %v", err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata": {"total_size": 8}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}`))
	f.Add([]byte(`{"weight_map": {"a": "../model.safetensors"}}`))
	f.Add([]byte(`{"weight_map": []}`))
	f.Add([]byte(`{"weight_map": {"a": 1}}`))
	f.Add([]byte(`{"weight_map": null}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		i, err := parseIndex(raw)
		if err != nil {
			return
		}
		for name := range i.files() {
			if filepath.Base(name) != name || name == ".." {
				t.Errorf("accepted the file %q", name)
			}
		}
	})
}
