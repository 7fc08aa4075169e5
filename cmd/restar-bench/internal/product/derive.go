// Package product makes runs by the product's own command, with recipes that derive from one file.
package product

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"
)

// shared are the parameters of the rl section that every algorithm has: those of the optimizer and of judging.
var shared = []string{
	"learning_rate", "warmup_steps", "weight_decay", "beta1", "beta2", "max_grad_norm", "temperature", "strict_answers", "verifier",
}

// Base is a recipe that others derive from.
type Base struct {
	dir  string // that its paths are relative to
	body yaml.MapSlice
}

// ReadBase reads a recipe file.
func ReadBase(path string) (Base, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Base{}, fmt.Errorf("%w; give a recipe with --recipe", err)
	}
	b := Base{}
	if b.dir, err = filepath.Abs(filepath.Dir(path)); err != nil {
		return b, err
	}
	if err := yaml.UnmarshalWithOptions(text, &b.body, yaml.UseOrderedMap()); err != nil {
		return b, fmt.Errorf("recipe %s: %s", path, yaml.FormatError(err, false, true))
	}
	return b, nil
}

// Change is what a derived recipe has otherwise; a value of nil takes a key away. Stages changes every stage.
type Change struct {
	Algorithm string // of rl; "" is the base's own
	Seed      uint64
	RL        yaml.MapSlice
	Stages    yaml.MapSlice
	Eval      yaml.MapSlice
}

// Derive returns a recipe as YAML: the base with changes. An algorithm other than the base's own takes over the shared parameters of
// the rl section only. Paths become absolute, so that the recipe may lie anywhere.
func (b Base) Derive(c Change) ([]byte, error) {
	out := b.absolute(nil, b.body).(yaml.MapSlice)
	own, _ := get(out, "rl").(yaml.MapSlice)
	if c.Algorithm == "" {
		c.Algorithm, _ = get(own, "algorithm").(string)
	}
	rl := yaml.MapSlice{{Key: "algorithm", Value: c.Algorithm}}
	for _, item := range own {
		if item.Key != "algorithm" && (get(own, "algorithm") == c.Algorithm || slices.Contains(shared, item.Key.(string))) {
			rl = append(rl, item)
		}
	}
	out = set(out, "seed", c.Seed)
	out = set(out, "rl", merged(rl, c.RL))
	if eval, ok := get(out, "eval").(yaml.MapSlice); ok {
		out = set(out, "eval", merged(eval, c.Eval))
	}
	stages, _ := get(out, "stages").([]any)
	for i := range stages {
		if stage, ok := stages[i].(yaml.MapSlice); ok {
			stages[i] = merged(stage, c.Stages)
		}
	}
	return yaml.Marshal(out)
}

// pathKeys are the keys of a recipe whose texts are paths of files, by their section.
var pathKeys = map[string][]string{
	"data": {"problems", "held_out", "demonstrations", "benchmarks"}, "model": {"from"}, "init": {"tokenizer"},
}

// absolute copies a value with the paths in it made absolute. at are the keys that lead to it.
func (b Base) absolute(at []string, v any) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		out := make(yaml.MapSlice, len(v))
		for i, item := range v {
			out[i] = yaml.MapItem{Key: item.Key, Value: b.absolute(append(slices.Clone(at), fmt.Sprint(item.Key)), item.Value)}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = b.absolute(at, v[i])
		}
		return out
	case string:
		if len(at) >= 2 && slices.Contains(pathKeys[at[len(at)-2]], at[len(at)-1]) && !filepath.IsAbs(v) {
			return filepath.Join(b.dir, v)
		}
	}
	return v
}

func get(m yaml.MapSlice, key string) any {
	for _, item := range m {
		if item.Key == key {
			return item.Value
		}
	}
	return nil
}

// set returns the map with one value, in its place or at the end.
func set(m yaml.MapSlice, key string, value any) yaml.MapSlice {
	out := slices.Clone(m)
	for i := range out {
		if out[i].Key == key {
			out[i].Value = value
			return out
		}
	}
	return append(out, yaml.MapItem{Key: key, Value: value})
}

func merged(m, changes yaml.MapSlice) yaml.MapSlice {
	for _, item := range changes {
		m = set(m, item.Key.(string), item.Value)
	}
	return slices.DeleteFunc(slices.Clone(m), func(item yaml.MapItem) bool { return item.Value == nil })
}
